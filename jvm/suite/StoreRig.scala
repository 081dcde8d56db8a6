package org.apache.spark.sql.execution.streaming.state.contract

import java.nio.file.{Files, Path}
import java.util.UUID

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.RunningQuery
import org.apache.spark.sql.types.StructType

import penstock.checkpoint.PenstockFileManager
import penstock.checkpoint.location.StateFile
import penstock.commit.driver.ReleaseQueue
import penstock.commit.executor.Expected
import penstock.commit.jvm.JvmResources
import penstock.settings.{CommitSettings, Keys}

/**
 * One checkpoint location and one run of a query on it. Plays Spark's driver: tells the release
 * queue of offsets and commits, and remembers the id of each version that counts.
 */
final class StoreRig(val variant: Variant, folder: Path) {
  private var queries = 1

  def root: Path = folder.resolve(if (queries == 1) "checkpoint" else s"checkpoint$queries")

  /** No other rig of this process has it. */
  val name: String = folder.getFileName.toString
  private var run = UUID.randomUUID()

  /** Settings that providers made from now on have beside the others. */
  val more: mutable.Map[String, String] = mutable.Map.empty
  private val ids = mutable.Map.empty[(Int, Long), String]
  private val begun = mutable.Set.empty[Long]
  private val ended = mutable.Set.empty[Long]
  private val providers = mutable.Buffer.empty[StateStoreProvider]
  private val from = mutable.Map.empty[StateStore, StateStoreProvider]
  private val stores = mutable.Buffer.empty[LocationStore]
  private var releasing: Option[ReleaseQueue] = None
  private var retrySeconds = 20
  private var localBytes = 1L << 30
  private var localFolder = "held"
  private var awaitCompaction = false
  private var pauseCompaction = false
  private var checksums = true
  private var checksumThreads = 4
  private var server: Option[String] = None
  start(0)

  private def resources: JvmResources = JvmResources.here

  def runId: String = run.toString
  def queue: ReleaseQueue = releasing.get
  def location: LocationStore = stores.last

  /** `scheme` is one of plain, faulty and late: the same folder, with faults of its own. */
  def provider(
      scheme: String = "plain",
      keys: KeyStateEncoderSpec = Rows.plain,
      values: StructType = Rows.valueSchema,
      partition: Int = 0,
      minDeltas: Int = 3): StateStoreProvider = {
    val where = if (scheme == "plain") root.toUri.toString else s"$scheme://$root"
    val id = StateStoreProviderId(StateStoreId(s"$where/state", 0, partition), run)
    val made = StateStoreProvider.createAndInit(
      id, keys.keySchema, values, keys, variant.families, storeConf(minDeltas), hadoopConf,
      useMultipleValuesPerKey = false, None)
    providers += made
    made
  }

  def getStore(provider: StateStoreProvider, version: Long, force: Boolean = false): StateStore = {
    val store = provider.getStore(version, idOf(provider.stateStoreId, version), force)
    from(store) = provider
    store
  }

  /** The provider that a store came from. */
  def providerOf(store: StateStore): StateStoreProvider = from(store)

  def getReadStore(from: StateStoreProvider, version: Long): ReadStateStore =
    from.getReadStore(version, idOf(from.stateStoreId, version))

  def upgrade(from: StateStoreProvider, store: ReadStateStore): StateStore =
    from.upgradeReadStoreToWriteStore(store, store.version, idOf(store.id, store.version))

  /** As a batch of one partition: offsets, the store's commit, the batch's commit. */
  def commit(store: StateStore): Long = {
    begin(store.version)
    val version = commitTask(store)
    end(store.version, Seq(store.id))
    version
  }

  /** Only what a task does. */
  def commitTask(store: StateStore): Long = {
    val version = store.commit()
    wins(store)
    version
  }

  /** The attempt of this store is the one that counts. */
  def wins(store: StateStore): Unit =
    store.getStateStoreCheckpointInfo().stateStoreCkptId.foreach { id =>
      ids((store.id.partitionId, store.version + 1)) = id
    }

  def begin(batch: Long): Unit = if (begun.add(batch)) {
    releasing.foreach(_.offsetsWritten(batch, Array.emptyByteArray))
  }

  def end(batch: Long, of: Seq[StateStoreId]): Unit = if (ended.add(batch)) {
    val needed = of.map { store =>
      val id = idOf(store, batch + 1)
      (id.getOrElse(StateFile.pieceOf("0", store.partitionId.toString, "default", batch + 1)),
        s"state/0/${store.partitionId}/${batch + 1}${id.fold(".")(i => s"_$i.")}")
    }
    releasing.foreach(_.commitWritten(batch, needed.map(_._2).mkString("\n").getBytes, needed.map(_._1).toSet))
  }

  /** One batch: puts the rows on top of `version`; returns the next version. */
  def batch(to: StateStoreProvider, version: Long, rows: ((String, Int), Int)*): Long = {
    val store = getStore(to, version)
    Rows.put(store, rows: _*)
    commit(store)
  }

  def read(from: StateStoreProvider, version: Long): Rows.Pairs = {
    val store = getReadStore(from, version)
    try Rows.all(store)
    finally store.release()
  }

  /** What a provider that has nothing of it in memory reads, once all is durable. */
  def readAnew(version: Long): Rows.Pairs = {
    settle()
    read(provider(), version)
  }

  /** Everything handed over so far is in the location. */
  def settle(): Unit = releasing.foreach { q =>
    if (!q.drain(20000)) {
      q.check()
      throw new Broken("the release queue does not come to rest")
    }
  }

  /** The run ends as it stands, and another begins at the first batch without a commit. */
  def restart(): Unit = {
    stop()
    run = UUID.randomUUID()
    val last = numbers("commits").maxOption.getOrElse(-1L)
    begun.filterInPlace(_ <= last)
    ended.filterInPlace(_ <= last)
    start(last + 1)
  }

  /** Another query begins, with a location of its own; the one before is left as it stands. */
  def startOver(): Unit = {
    providers.foreach(_.close())
    Seq(providers, from, ids, begun, ended, stores).foreach(_.clear())
    queries += 1
    run = UUID.randomUUID()
    start(0)
  }

  /** A new run, in which a write that fails is given up after a second. */
  def restartImpatient(): Unit = restartWith(retrySeconds = 1)

  /** A new run with other limits; `server` is the address of its log. */
  def restartWith(
      server: Option[String] = None,
      retrySeconds: Int = 20,
      localBytes: Long = 1L << 30,
      localFolder: String = "held",
      awaitCompaction: Boolean = false,
      pauseCompaction: Boolean = false): Unit = {
    this.server = server
    this.awaitCompaction = awaitCompaction
    this.pauseCompaction = pauseCompaction
    this.localFolder = localFolder
    this.retrySeconds = retrySeconds
    this.localBytes = localBytes
    restart()
  }

  /** A file of the checkpoint, as an executor that has not written it opens it. */
  def open(path: String): Array[Byte] = {
    val conf = hadoopConf
    conf.set(RunningQuery.RunIdKey, run.toString)
    val file = new HadoopPath(s"${root.toUri}/$path")
    Using.resource(new PenstockFileManager(file.getParent, conf).open(file))(_.readAllBytes())
  }

  /** From now on files of state have checksums, or none; `threads` write the files of a store. */
  def setChecksums(isOn: Boolean, threads: Int): Unit = {
    checksums = isOn
    checksumThreads = threads
  }

  def hasChecksum(version: Long): Boolean =
    Using.resource(Files.list(root.resolve("state/0/0"))) {
      _.iterator.asScala.map(_.getFileName.toString).exists { name =>
        name.startsWith(s"${version}_") && name.endsWith(".crc")
      }
    }

  /** The locks of the folders in which this process keeps what is on its way. */
  def localLocks: Seq[Path] =
    Using.resource(Files.list(folder.resolveSibling("held"))) {
      _.iterator.asScala.map(_.resolve("lock")).toSeq
    }

  /** Nothing of a partition is on its way to the location. */
  def holdsNothing(partition: Int = 0): Boolean =
    resources.heldState.isDurable(run.toString, s"state/0/$partition", Long.MaxValue)

  def stop(): Unit = {
    Seq("faulty", "late").foreach(faults(_))
    stores.foreach(_.letGo())
    releasing.foreach { queue =>
      queue.drain(2000)
      resources.endRun(queue.run)
    }
    providers.foreach(_.close())
    providers.clear()
    stores.filterNot(_.wrong.isEmpty).foreach(s => throw new Broken(s.wrong.asScala.mkString("; ")))
  }

  /** Scripts the faults of one scheme; none heals it. */
  def faults(scheme: String, lines: String*): Unit =
    if (lines.isEmpty) {
      Files.deleteIfExists(script(scheme))
      ()
    } else {
      val fresh = Files.writeString(folder.resolve(s"$scheme.new"), lines.mkString("\n"))
      Files.move(fresh, script(scheme), java.nio.file.StandardCopyOption.ATOMIC_MOVE)
      ()
    }

  /** The names of what the location has of a partition, without checksums. */
  def files(partition: Int = 0): Set[String] = {
    val partitionFolder = root.resolve(s"state/0/$partition")
    if (!Files.isDirectory(partitionFolder)) Set.empty
    else
      Using.resource(Files.list(partitionFolder)) {
        _.iterator.asScala.map(_.getFileName.toString).filterNot(_.endsWith(".crc")).toSet
      }
  }

  def hasVersion(version: Long, ending: String = ""): Boolean = files().exists { name =>
    (name.startsWith(s"$version.") || name.startsWith(s"${version}_")) && name.endsWith(ending)
  }

  def deleteVersion(version: Long): Unit =
    files().filter(n => n.startsWith(s"$version.") || n.startsWith(s"${version}_")).foreach { name =>
      Files.delete(root.resolve(s"state/0/0/$name"))
    }

  /** The last byte of every file of a version is lost. */
  def cutShort(version: Long): Unit =
    files().filter(_.startsWith(s"${version}_")).foreach { name =>
      val file = root.resolve(s"state/0/0/$name")
      Files.write(file, Files.readAllBytes(file).dropRight(1))
    }

  /** Commits of a partition wait until this is closed, as they do for a long flush. */
  def slowCommit(partition: Int): java.io.Closeable = {
    val file = new HadoopPath(s"${root.toUri}/state/0/$partition/0.zip")
    Files.createDirectories(root.resolve(s"state/0/$partition"))
    val files = new FileContextBasedCheckpointFileManager(file.getParent, hadoopConf)
    expectSnapshot(file, StateFile.of(file).get)
    resources.heldState.createSnapshot(run.toString, file, StateFile.of(file).get, files, hadoopConf)
  }

  /** As a commit that announces its snapshot does. */
  def expectSnapshot(file: HadoopPath, stateFile: StateFile): Expected =
    resources.heldState.expectSnapshot(run.toString, file, stateFile, hadoopConf)

  private def start(first: Long): Unit = if (variant.queue) {
    val store = new LocationStore(root, first)
    stores += store
    val made = new ReleaseQueue(
      "query", run.toString, server.map(_ => 1L), first, false, store,
      resources.pools.releasers("suite", hadoopConf), resources.pools.followers("suite", hadoopConf),
      new CommitSettings(hadoopConf), resources.changes, _ => ())
    resources.releases.started(made, isActive = _ => true)
    releasing = Some(made)
  }

  private def idOf(store: StateStoreId, version: Long): Option[String] =
    ids.get((store.partitionId, version))

  private def numbers(of: String): Seq[Long] = {
    val numbersFolder = root.resolve(of)
    if (!Files.isDirectory(numbersFolder)) Nil
    else
      Using.resource(Files.list(numbersFolder)) {
        _.iterator.asScala.flatMap(_.getFileName.toString.toLongOption).toSeq
      }
  }

  private def script(scheme: String): Path = folder.resolve(s"$scheme.faults")

  private def storeConf(minDeltas: Int): StateStoreConf = {
    val sql = new SQLConf
    val prefix = "spark.sql.streaming.stateStore"
    sql.setConfString(s"$prefix.providerClass", s"org.apache.spark.sql.execution.streaming.state.${variant.provider}")
    sql.setConfString(s"$prefix.compression.codec", variant.codec)
    sql.setConfString(s"$prefix.checkpointFormatVersion", variant.format.toString)
    sql.setConfString(s"$prefix.minDeltasForSnapshot", minDeltas.toString)
    sql.setConfString(s"$prefix.rocksdb.changelogCheckpointing.enabled", variant.changelog.toString)
    sql.setConfString(s"$prefix.rocksdb.lockAcquireTimeoutMs", "300")
    sql.setConf(SQLConf.STREAMING_CHECKPOINT_FILE_CHECKSUM_ENABLED, checksums)
    sql.setConf(SQLConf.STATE_STORE_FILE_CHECKSUM_THREAD_POOL_SIZE, checksumThreads)
    StateStoreConf(sql)
  }

  private def hadoopConf: Configuration = {
    val conf = new Configuration(HadoopDefaults.read)
    Seq("faulty", "late").foreach { scheme =>
      conf.set(s"fs.$scheme.impl", "penstock.testing.DelayedFileSystem")
      conf.set(s"fs.AbstractFileSystem.$scheme.impl", "penstock.testing.DelayedFs")
      conf.set(s"fs.$scheme.faults", script(scheme).toString)
      conf.setBoolean(s"fs.$scheme.impl.disable.cache", true)
    }
    server.foreach(conf.set(Keys.Url.name, _))
    more.foreach { case (key, value) => conf.set(key, value) }
    conf.set(Keys.CommitRetrySeconds.name, retrySeconds.toString)
    conf.set(Keys.LocalMaxBytes.name, localBytes.toString)
    conf.setBoolean(Keys.CommitAwaitCompaction.name, awaitCompaction)
    conf.setBoolean(Keys.CommitPauseCompaction.name, pauseCompaction)
    conf.set(Keys.CommitMode.name, variant.mode)
    conf.set(Keys.LocalDir.name, s"${folder.getParent}/$localFolder")
    if (variant.isOurs) {
      conf.set(
        SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key,
        "penstock.checkpoint.PenstockFileManager")
    }
    conf
  }
}
