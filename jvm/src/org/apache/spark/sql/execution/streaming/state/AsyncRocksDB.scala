// Scala because: it extends Spark's RocksDB class, which every state store of every task loads
// and commits.
package org.apache.spark.sql.execution.streaming.state

import java.io.File

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

import penstock.{Failpoint, TryAgain}
import penstock.checkpoint.location.{StateFile, StoreName}
import penstock.commit.{Work, Workers}
import penstock.commit.channel.{HowFar, NotReleasing, Standing}
import penstock.commit.executor.Expected
import penstock.commit.jvm.JvmResources
import penstock.settings.{CommitSettings, Mode}

/**
 * A RocksDB whose `commit` returns at once. What a commit does follows on a pool shared by all
 * stores of this JVM:
 *
 *   - flush, LSM checkpoint and the local changelog: the next `load` waits for these, because they
 *     capture what the next batch would write over;
 *   - the upload of a snapshot, where there is one: nothing here waits for it but the commit after
 *     the next.
 *
 * A commit that takes no snapshot only closes a local file; it is done on the spot, unless the
 * commit before it is not durable yet. Compaction goes on beside all of it: an LSM checkpoint is
 * consistent whatever runs beside it. Where the settings say so it is off from the flush until the
 * LSM checkpoint is taken.
 */
private[state] final class AsyncRocksDB(
    dfsRootDir: String,
    conf: RocksDBConf,
    localRootDir: File,
    hadoopConf: Configuration,
    loggingId: String,
    useColumnFamilies: Boolean,
    enableStateStoreCheckpointIds: Boolean,
    partitionId: Int,
    eventForwarder: Option[RocksDBEventForwarder],
    uniqueId: Option[String])
    extends EvictingRocksDB(
      dfsRootDir,
      conf,
      localRootDir,
      hadoopConf,
      loggingId,
      useColumnFamilies,
      enableStateStoreCheckpointIds,
      partitionId,
      eventForwarder,
      uniqueId) {

  private val settings = new CommitSettings(hadoopConf)
  private val run = Option(hadoopConf.get(StreamExecution.RUN_ID_KEY)).getOrElse("")
  private def resources = JvmResources.here
  private val internals = new RocksDBInternals(this, resources.clock)
  @volatile private var last: Option[Committing] = None
  @volatile private var lastMetrics: Option[RocksDBMetrics] = None
  @volatile private var committer: Option[Thread] = None
  @volatile private var upload: Option[SnapshotUpload] = None
  @volatile private var laterUpload: Option[SnapshotUpload] = None
  @volatile private var compaction = Compaction(0, 0)

  override def load(
      version: Long,
      stateStoreCkptId: Option[String],
      readOnly: Boolean,
      loadEmpty: Boolean): RocksDB = {
    settle(version)
    if (version != loadedVersion || stateStoreCkptId != loadedStateStoreCkptId) {
      awaitSnapshots(version, stateStoreCkptId)
    }
    val compactedMs = internals.compactionMs
    val loaded = super.load(version, stateStoreCkptId, readOnly, loadEmpty)
    // Spark may begin to count anew with a load.
    compaction = compaction.next(compactedMs).from(internals.compactionMs)
    loaded
  }

  override def commit(forceSnapshot: Boolean): (Long, StateStoreCheckpointInfo) = {
    endWrites()
    if (!isHeldBack) super.commit(forceSnapshot)
    else {
      val version = loadedVersion + 1
      val info =
        StateStoreCheckpointInfo(partitionId, version, sessionStateStoreCkptId, loadedStateStoreCkptId)
      val work = new Committing(version, forceSnapshot)
      last = Some(work)
      if (isDoneOnTheSpot(version, forceSnapshot)) work.performHere()
      else {
        refreshRecordedMetricsForTest()
        lastMetrics = super.metricsOpt
        work.expected = announce(version, forceSnapshot)
        work.follow()
      }
      (version, info)
    }
  }

  /** Of a commit that is not made yet: all but what making it takes. */
  override def metricsOpt: Option[RocksDBMetrics] = last match {
    case Some(work) if !work.isOver(MetricsWaitMs) => lastMetrics
    case _ => super.metricsOpt
  }

  override def rollback(): Unit = {
    last.foreach(_.await())
    super.rollback()
  }

  override def close(): Unit = {
    last.foreach(_.await())
    // What is uploaded is in a folder that ends with this store.
    upload.foreach(_.await())
    laterUpload.foreach(_.dropUnlessBegun())
    laterUpload.foreach(_.await())
    super.close()
  }

  /**
   * Called by a commit when its LSM checkpoint is taken, and by Spark's maintenance, whose few
   * threads serve the stores of all queries: these wait for no batch.
   */
  override private[sql] def uploadSnapshot(snapshot: RocksDB.RocksDBSnapshot): Unit =
    if (committer.contains(Thread.currentThread())) {
      Failpoint.reach("in_commit", run, snapshot.version - 1)
      if (settings.pauseCompaction) internals.allowCompaction(true)
      val announced = last.filter(_.version == snapshot.version).flatMap(_.expected)
      val expected = announced.orElse(expectSnapshot(snapshot.version, snapshot.uniqueId))
      val work = uploadOf(snapshot, expected, isNeeded = true)
      upload = Some(work)
      resources.copier.whenReleased(run, snapshot.version - 1)(uploaders.submit(work))
    } else if (!isHeldBack || isCopied(snapshot.version - 1)) {
      resources.heldState.upload(None)(super.uploadSnapshot(snapshot))
    } else {
      laterUpload.foreach(_.dropUnlessBegun())
      val work = uploadOf(snapshot, None, isNeeded = false)
      laterUpload = Some(work)
      resources.copier.whenCopied(run, snapshot.version - 1)(uploaders.submit(work))
    }

  private def uploaders: Workers =
    resources.pools.uploaders(StoreName.of(new Path(dfsRootDir)), hadoopConf)

  /**
   * The driver is told before Spark is that this attempt has written the version: a batch must not
   * be committed with what an attempt before this one wrote under the same name.
   */
  private def announce(version: Long, isForced: Boolean): Option[Expected] = {
    val isUploaded = !conf.enableChangelogCheckpointing || isForced || internals.isSnapshotForced
    val expected = if (isUploaded) expectSnapshot(version, sessionStateStoreCkptId) else None
    StateFile.of(fileOf(version, sessionStateStoreCkptId)).foreach(resources.heldState.announce(run, _))
    expected
  }

  private def expectSnapshot(version: Long, id: Option[String]): Option[Expected] = {
    val file = fileOf(version, id)
    StateFile.of(file).map(resources.heldState.expectSnapshot(run, file, _, hadoopConf))
  }

  private def uploadNow(snapshot: RocksDB.RocksDBSnapshot): Unit = super.uploadSnapshot(snapshot)

  private def uploadOf(
      snapshot: RocksDB.RocksDBSnapshot,
      expected: Option[Expected],
      isNeeded: Boolean): SnapshotUpload =
    new SnapshotUpload(loggingId, run, settings, snapshot, expected)(
      uploadNow,
      (work, e) => if (isNeeded) giveUp(work, e) else logWarning(s"$work of $loggingId failed", e))

  private def isCopied(batch: Long): Boolean = resources.toDriver.ask(HowFar(run)) match {
    case standing: Standing => standing.copied >= batch
    case NotReleasing => false
  }

  private def commitNow(forceSnapshot: Boolean): Unit = {
    super.commit(forceSnapshot)
    lastMetrics = super.metricsOpt
  }

  /** The steps of a commit with a snapshot; one without has none of them. */
  private def tellSteps(waitedNs: Long): Unit = {
    val latencies = lastMetrics.fold(Map.empty[String, Long])(_.lastCommitLatencyMs.toMap)
    compaction = compaction.next(internals.compactionMs)
    val steps = Map(
      "flush" -> latencies.getOrElse("flush", 0L) * NsInMs,
      "lsm checkpoint" -> latencies.getOrElse("checkpoint", 0L) * NsInMs,
      "compaction" -> compaction.untoldMs * NsInMs,
      "wait for compaction" -> waitedNs)
    compaction = compaction.copy(untoldMs = 0)
    resources.steps.tell(run, steps)
  }

  /**
   * A load from the location looks for snapshots there. One that belongs to a commit has to have
   * arrived by then: where changelogs are off there is nothing else, and a changelog does not tell
   * which column families there are.
   */
  private def awaitSnapshots(version: Long, id: Option[String]): Unit =
    if (isHeldBack && (useColumnFamilies || !conf.enableChangelogCheckpointing)) {
      resources.steps.timed(run, "wait to load") {
        resources.heldState.awaitDurable(run, folder, Long.MaxValue, settings.retryMs)
      }
      StateFile.of(fileOf(version, id)).filter(_ => version > 0).foreach { file =>
        resources.questions.awaitArrival(run, file, settings)(hasArrived = false)
      }
    }

  private def isHeldBack: Boolean = settings.mode != Mode.Sync && resources.questions.isReleasing(run)

  private def fileOf(version: Long, id: Option[String]): Path =
    new Path(dfsRootDir, s"$version${id.fold("")("_" + _)}.zip")

  private def settle(version: Long): Unit = last.foreach { work =>
    resources.steps.timed(run, "wait to load")(work.await())
    if (work.version == version) work.check()
    last = None
  }

  private def folder: String = StateFile.folderOf(new Path(dfsRootDir))

  private def takesSnapshot(version: Long, isForced: Boolean): Boolean =
    !conf.enableChangelogCheckpointing || isForced || internals.isSnapshotForced ||
      version - internals.lastSnapshotVersion >= conf.minDeltasForSnapshot

  private def isDoneOnTheSpot(version: Long, isForced: Boolean): Boolean =
    settings.mode == Mode.AsyncCheckpoint ||
      (!takesSnapshot(version, isForced) && resources.heldState.isDurable(run, folder, version - 1))

  private def giveUp(work: String, e: Throwable): Unit = {
    val reason = s"$work of $loggingId failed: ${e.getMessage}. The query goes on from the last " +
      "durable batch when restarted"
    logError(reason, e)
    resources.questions.giveUp(run, reason)
  }

  /** One commit. Its thread may end before it, or after the changelog is there: see `perform`. */
  private final class Committing(val version: Long, forceSnapshot: Boolean) extends Work {
    private var isDone = false
    @volatile var expected: Option[Expected] = None
    @volatile private var hasBegun = false
    @volatile private var waitedNs = 0L
    @volatile private var failure: Option[Throwable] = None

    override def name: String = s"commit of version $version"

    /**
     * Done again by the heartbeat if its thread has ended: a commit that had not begun is made, one
     * that had got through is carried on, and one that was cut in the middle is a failure, because
     * what it was to write is gone from memory.
     */
    override def perform(): Unit = {
      try {
        if (hasBegun && loadedVersion != version) {
          throw new TryAgain("commit_died", "its thread ended in the middle of it")
        }
        if (!hasBegun) {
          resources.steps.took(run, StateBefore, waitedNs)
          make()
        }
      } catch {
        case NonFatal(e) =>
          failure = Some(e)
          giveUp(name, e)
      }
      end()
    }

    /** On the task's own thread, which fails with it: Spark runs the task again. */
    def performHere(): Unit =
      try {
        resources.steps.timed(run, StateBefore) {
          resources.heldState.awaitDurable(run, folder, version - 1, settings.retryMs)
        }
        make()
      } finally end()

    /** On a thread of the pool, which is not taken before it has something to do. */
    def follow(): Unit = {
      val start = resources.clock.nanos
      resources.heldState.whenDurable(run, folder, version - 1, settings.retryMs) {
        waitedNs = resources.clock.nanos - start
        resources.pools.committers(hadoopConf).submit(this)
      }
    }

    private def make(): Unit = {
      resources.heldState.checkDurable(run, folder, version - 1, settings.retryMs)
      Failpoint.reach("before_flush", run, version - 1)
      val isSnapshot = takesSnapshot(version, forceSnapshot)
      val start = resources.clock.nanos
      val isPaused = isSnapshot && settings.pauseCompaction
      val isAlone = (!settings.awaitCompaction || internals.awaitCompaction(settings.retryMs)) &&
        (!isPaused || internals.stopCompaction(settings.retryMs))
      // What is waited for makes reads or the checkpoint quicker, and nothing right or wrong.
      if (!isAlone) {
        logWarning(s"a compaction of $loggingId runs for more than ${settings.retryMs / 1000} s; " +
          s"$name goes on beside it")
      }
      val compactionNs = resources.clock.nanos - start
      committer = Some(Thread.currentThread())
      hasBegun = true
      try commitNow(forceSnapshot)
      finally {
        committer = None
        if (isPaused) internals.allowCompaction(true)
      }
      if (isSnapshot) tellSteps(compactionNs)
    }

    private def end(): Unit = synchronized {
      isDone = true
      notifyAll()
    }

    def await(): Unit = if (!isOver(settings.stallMs)) throw LateWork.error(name, loggingId, settings.stallMs)

    def isOver(limitMs: Long): Boolean = resources.clock.await(this, limitMs)(isDone)

    def check(): Unit = failure.foreach { e =>
      throw new TryAgain("commit_failed", s"$name failed: ${e.getMessage}", e)
    }
  }

  private val NsInMs = 1000000L
  private val StateBefore = "wait for the state before"
  private val MetricsWaitMs = if (conf.enableChangelogCheckpointing) 5L else 0L
}
