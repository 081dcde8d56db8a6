// Scala because: it runs on Spark's stream thread, between two calls that Spark makes of its
// file manager.
package penstock.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.StreamMetadata
import org.apache.spark.sql.penstock.{RunningQuery, SinkKind}

import penstock.{BadCall, Damaged}
import penstock.checkpoint.location.{StoreName, WholeFile}
import penstock.client.Gateway
import penstock.commit.driver.{ReleaseQueue, Snapshots}
import penstock.commit.jvm.JvmResources
import penstock.query.{QueryRun, QueryRuns, TaskLog}
import penstock.settings.{CommitSettings, Connection, Keys, Mode}
import penstock.wire.{LastMarker, LogLimits}

/**
 * What happens once per run, before Spark reads its logs:
 *
 *   1. Take the query's next instance number. From then on an older run cannot mark.
 *   1. Let what an older run of this driver has computed become durable, and end its queue.
 *   1. If the checkpoint was written to a moment ago, wait for what an older run that is still
 *      alive elsewhere may be writing. Nothing would be lost without that, but its file would be
 *      in the way of ours, and both runs would stop.
 *   1. Bring the location up to the last marker from the log, in the order of release, and write
 *      the offsets of the batch after it if they were recorded: it is run again with these.
 *   1. Where the log has snapshots of the state: write what the location has lost of it.
 */
private[checkpoint] object Recovery extends Logging {

  /** A run that wrote to the checkpoint within this time may still be alive. */
  private val AliveMs = 3000L

  /** How long a file that an older run has begun may take to appear. */
  private val GraceMs = 300L

  private val ChangeLogs = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

  /** How long an older run of this driver may take to make durable what it has computed. */
  private val DrainMs = 30000L

  def ensure(root: Path, files: CheckpointFileManager, conf: Configuration): Unit =
    for {
      (query, run) <- RunningQuery.streamThread
      if !QueryRuns.here.ofCheckpoint(root.toString).exists(_.run == run)
      // A thread made by a stream thread inherits its properties, and may start another query.
      metadata <- StreamMetadata.read(new Path(root, "metadata"), conf) if metadata.id == query
    } {
      Keys.refuseUnknown(conf)
      val settings = new CommitSettings(conf)
      val gateway = Connection.of(conf).map(JvmResources.here.gateways.to)
      val taken = gateway.map(_.queries.takeOver(query, run, RunningQuery.nameOf(query)))
      QueryRuns.here.ofCheckpoint(root.toString).flatMap(_.queue).foreach(endOlder)
      if (taken.isDefined) letOlderRunFinish(root, files)
      for (g <- gateway; t <- taken) bringUp(root, files, g, query, t.last)
      val logged = gateway.toSeq.flatMap(new LoggedState(root, files, _, query, conf).restore())
      val snapshots = Option.when(settings.snapshotsInLog)(new Snapshots(logged))
      val log = for (g <- gateway; t <- taken)
        yield new TaskLog(g, query, t.instance, t.limits, JvmResources.here.clock)
      val started = start(root, files, conf, settings, query, run, log, snapshots)
      QueryRuns.here.started(root.toString, started)
    }

  private def start(
      root: Path,
      files: CheckpointFileManager,
      conf: Configuration,
      settings: CommitSettings,
      query: String,
      run: String,
      log: Option[TaskLog],
      snapshots: Option[Snapshots]): QueryRun = {
    val committed = latest(files, new Path(root, LogFile.Commits))
    val offsets = latest(files, new Path(root, LogFile.Offsets))
    val mode = ModeOf.run(root, offsets, files, conf, settings)
    if (mode != Mode.Sync) refuseGaps(query, root, mode)
    val usesSparks = RunningQuery.insistsOnItsProvider(query)
    if (usesSparks) RunningQuery.setForThisQuery(ProviderName.Key, ProviderName.Stock)
    StateFormat.settle(query, root, committed, files, settings)
    val queue = Option.when(mode != Mode.Sync) {
      // A task would say so too, but Spark shows its own words for what fails in a store.
      val resources = JvmResources.here
      resources.localFolder.of(settings)
      val toLog = log.filter(_ => RunningQuery.sinkOf(query) == SinkKind.Log)
      val store =
        new CheckpointStore(
          root, files, toLog, committed, resources.pools.preparers(StoreName.of(root)), resources.clock)
      val queue = new ReleaseQueue(
        query,
        run,
        toLog.map(_.instance),
        committed + 1,
        offsets > committed,
        store,
        resources.pools.releasers(toLog.fold(StoreName.of(root))(_.server), conf),
        resources.pools.followers(followed(root, toLog), conf),
        settings,
        resources.changes,
        why => RunningQuery.cancelJobs(run, why.getMessage),
        snapshots,
        toLog.fold(LogLimits.Unnamed)(_.limits),
        offsetsInMarker = toLog.isDefined && mode == Mode.Full && !usesSparks && noTaskWaitsForOffsets(conf))
      resources.releases.started(queue, RunningQuery.isActive)
      queue
    }
    new QueryRun(query, run, mode, log, queue, offsets, usesSparks)
  }

  /** A copy to the location reads from the log what nobody has placed there: either may hang. */
  private def followed(root: Path, toLog: Option[TaskLog]): String =
    StoreName.of(root) + toLog.fold("")(log => s"-${log.server}")

  /**
   * No task waits for the offsets of its batch: state is small files, and what is not is written
   * behind the task by our provider.
   */
  private def noTaskWaitsForOffsets(conf: Configuration): Boolean =
    conf.getBoolean(ChangeLogs, false) && conf.get(ProviderName.Key) == ProviderName.Ours

  /** Batches are released one after the other: one that Spark leaves out would be waited for. */
  private def refuseGaps(query: String, root: Path, mode: Mode): Unit =
    RunningQuery.reasonForGaps(query).foreach { reason =>
      throw new BadCall(
        "gapped_batches",
        s"the query at $root has $reason, with which Spark does not write the offsets of every " +
          s"batch before it; commits that follow behind (${Keys.CommitMode}=${mode.name}) need " +
          s"them. Set ${Keys.CommitMode}=sync for this query, or do without $reason")
    }

  private def endOlder(queue: ReleaseQueue): Unit = {
    if (!queue.drain(DrainMs)) {
      logWarning(s"an older run of query ${queue.query} has computed a batch that did not become " +
        "durable; it is computed again")
    }
    JvmResources.here.endRun(queue.run)
  }

  private def letOlderRunFinish(root: Path, files: CheckpointFileManager): Unit = {
    val written = Seq(LogFile.Offsets, LogFile.Commits)
      .map(new Path(root, _))
      .filter(files.exists)
      .flatMap(files.list(_))
      .map(_.getModificationTime)
    val clock = JvmResources.here.clock
    if (written.exists(_ > clock.wallMs - AliveMs)) clock.sleepMs(GraceMs)
  }

  private def bringUp(
      root: Path,
      files: CheckpointFileManager,
      gateway: Gateway,
      query: String,
      last: Option[LastMarker]): Unit = {
    val committed = latest(files, new Path(root, LogFile.Commits))
    if (last.exists(_.batch > committed)) {
      logWarning(s"batches ${committed + 1} to ${last.get.batch} of query $query are visible but " +
        "not in the checkpoint location; copying them from the log")
    }
    val logged = gateway.queries.checkpoint(query, committed)
    logged.markers.foreach { marker =>
      val store = new MarkedBatch(root, files, gateway, query, marker)
      if (marker.commit.isEmpty || !store.canBeWritten) {
        throw new Damaged(
          "checkpoint_behind",
          s"query $query has marked batch ${marker.batch} in the log (LSN ${marker.lsn}), but " +
            s"the checkpoint at $root has commits up to $committed and no offsets of that batch; " +
            "restore the checkpoint that goes with the log, or start with a new checkpoint " +
            "location and a new output stream")
      }
      store.write()
    }
    logged.offsets.foreach { case (batch, entry) =>
      val file = new Path(root, s"${LogFile.Offsets}/$batch")
      if (!files.exists(file)) {
        files.mkdirs(file.getParent)
        WholeFile.create(files, file, gateway.queries.readFile(query, entry))
      }
    }
  }

  private def latest(files: CheckpointFileManager, folder: Path): Long =
    if (!files.exists(folder)) -1L
    else files.list(folder).flatMap(_.getPath.getName.toLongOption).maxOption.getOrElse(-1L)
}

/** How a run commits: as told, unless its state is kept by a provider that cannot. */
private object ModeOf extends Logging {
  def run(
      root: Path,
      latestOffsets: Long,
      files: CheckpointFileManager,
      conf: Configuration,
      settings: CommitSettings): Mode = {
    val configured = conf.get(ProviderName.Key, ProviderName.SparkDefault)
    val recorded =
      if (latestOffsets < 0) None
      else
        WholeFile
          .read(files, new Path(root, s"${LogFile.Offsets}/$latestOffsets"))
          .flatMap(ProviderName.in)
    if (configured == ProviderName.Ours && recorded.exists(!ProviderName.isRocksDB(_))) {
      throw new BadCall(
        "provider_overridden",
        s"${ProviderName.Key} is ${ProviderName.Ours}, but the checkpoint at $root was begun " +
          s"with ${recorded.get}, which Spark would use instead without a word. Set it to that " +
          "class before this query is started, or start it with a new checkpoint location")
    }
    val provider = recorded.getOrElse(configured)
    if (settings.mode != Mode.Sync && !ProviderName.isRocksDB(provider)) {
      logInfo(s"commits of the query at $root are synchronous: its state is kept by $provider")
      Mode.Sync
    } else if (settings.mode != Mode.Sync && !JvmResources.here.releases.canBeTold(RunningQuery.isLocal)) {
      throw new BadCall(
        "no_plugin",
        s"${Keys.CommitMode} is ${settings.mode.name}, for which executors must tell the driver " +
          "what they wrote: set spark.plugins=penstock.PenstockPlugin (penstock.attach does), or " +
          s"set ${Keys.CommitMode}=sync")
    } else settings.mode
  }
}
