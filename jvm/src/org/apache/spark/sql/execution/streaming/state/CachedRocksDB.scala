// Scala because: it extends Spark's RocksDB class, which every read and write of state goes to.
package org.apache.spark.sql.execution.streaming.state

import java.io.File

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.util.NextIterator

import penstock.commit.jvm.JvmResources
import penstock.prefetch.{NativeStore, StoreCache}
import penstock.settings.PrefetchSettings

/**
 * A RocksDB with a cache in front of it, into which state is fetched before it is asked for. With
 * the settings as they are by default there is none, and every call is Spark's own.
 *
 * RocksDB is closed in a load that does not find its version open, in a load from a snapshot and in
 * a close: the cache is shut before each. A rollback leaves the aborted writes in the open store, so
 * it shuts the cache too, until the next load. Replayed change logs come while it is shut, and so
 * pass it by.
 */
private[state] abstract class CachedRocksDB(
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
    extends RocksDB(
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

  private val settings = new PrefetchSettings(hadoopConf)
  private val run = Option(hadoopConf.get(StreamExecution.RUN_ID_KEY)).getOrElse("")
  private val slowness = Option.when(settings.isSlow)(new SlowReads(this, useColumnFamilies))
  // A store that no query of a run has opened is one that a state reader looks into once.
  private val isCached = settings.cacheOrder.isDefined && run.nonEmpty

  /** Neither cached nor slow: all that a read or write of state asks, where prefetching is off. */
  private val isPlain = !isCached && slowness.isEmpty
  @volatile private var cache: StoreCache = _
  if (settings.isDirect) DirectReads.enable(rocksDbOptions, localRootDir)

  override def load(
      version: Long,
      stateStoreCkptId: Option[String],
      readOnly: Boolean,
      loadEmpty: Boolean): RocksDB = {
    if (isCached && (cache == null || cache.isOver)) {
      if (cache != null) JvmResources.here.prefetch.close(cache)
      cache = newCache()
    }
    val stays = !loadEmpty && version == loadedVersion &&
      stateStoreCkptId == loadedStateStoreCkptId &&
      (stateStoreCkptId.isDefined || !enableStateStoreCheckpointIds)
    if (cache != null && !(stays && cache.isOpen && !cache.hasUnwritten)) cache.shut()
    val loaded = super.load(version, stateStoreCkptId, readOnly, loadEmpty)
    if (cache != null) {
      if (!cache.isOpen) cache.open()
      // A batch begins with the version that has its number.
      cache.begin(version)
    }
    loaded
  }

  override def loadFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      snapshotVersionStateStoreCkptId: Option[String],
      endVersionStateStoreCkptId: Option[String]): RocksDB = {
    if (cache != null) cache.shut()
    super.loadFromSnapshot(
      snapshotVersion, endVersion, snapshotVersionStateStoreCkptId, endVersionStateStoreCkptId)
  }

  override def rollback(): Unit = {
    if (cache != null) cache.shut()
    super.rollback()
  }

  override def close(): Unit = {
    if (cache != null) JvmResources.here.prefetch.close(cache)
    slowness.foreach(_.close())
    super.close()
  }

  /** To be called with a batch's commit, on the task's thread, before anything of it is captured. */
  protected def endWrites(): Unit = if (cache != null) cache.endBatch()

  override def get(key: Array[Byte], cfName: String): Array[Byte] =
    if (isPlain) super.get(key, cfName)
    else if (isOn) cache.get(cfName, key, fills = !Scans.isUnderWay)
    else readNow(cfName, key)

  override def multiGet(keys: Array[Array[Byte]], cfName: String): Iterator[Array[Byte]] =
    if (isPlain) super.multiGet(keys, cfName)
    else if (isOn) keys.map(cache.get(cfName, _, fills = !Scans.isUnderWay)).iterator
    else {
      keys.foreach(key => slowness.foreach(_.pause(cfName, key)))
      super.multiGet(keys, cfName)
    }

  override def keyExists(key: Array[Byte], cfName: String): Boolean =
    if (isPlain) super.keyExists(key, cfName)
    else if (isOn) cache.exists(cfName, key, fills = !Scans.isUnderWay)
    else {
      slowness.foreach(_.pause(cfName, key))
      super.keyExists(key, cfName)
    }

  override def getMergedValues(
      key: Array[Byte],
      cfName: String): Iterator[ArrayIndexRange[Byte]] = {
    writeOut()
    super.getMergedValues(key, cfName)
  }

  override def put(
      key: Array[Byte],
      value: Array[Byte],
      cfName: String,
      includesPrefix: Boolean,
      deriveCfName: Boolean,
      includesChecksum: Boolean): Unit =
    if (isPlain) super.put(key, value, cfName, includesPrefix, deriveCfName, includesChecksum)
    else if (isOn && !includesPrefix) cache.write(cfName, key, value)
    else aroundAll(super.put(key, value, cfName, includesPrefix, deriveCfName, includesChecksum))

  override def remove(
      key: Array[Byte],
      cfName: String,
      includesPrefix: Boolean,
      deriveCfName: Boolean,
      includesChecksum: Boolean): Unit =
    if (isPlain) super.remove(key, cfName, includesPrefix, deriveCfName, includesChecksum)
    else if (isOn && !includesPrefix) cache.write(cfName, key, null)
    else aroundAll(super.remove(key, cfName, includesPrefix, deriveCfName, includesChecksum))

  override def putList(
      key: Array[Byte],
      values: List[Array[Byte]],
      cfName: String,
      includesPrefix: Boolean,
      includesChecksum: Boolean,
      deriveCfName: Boolean): Unit = around(cfName, key, includesPrefix) {
    super.putList(key, values, cfName, includesPrefix, includesChecksum, deriveCfName)
  }

  override def merge(
      key: Array[Byte],
      value: Array[Byte],
      cfName: String,
      includesPrefix: Boolean,
      deriveCfName: Boolean,
      includesChecksum: Boolean): Unit = around(cfName, key, includesPrefix) {
    super.merge(key, value, cfName, includesPrefix, deriveCfName, includesChecksum)
  }

  override def mergeList(
      key: Array[Byte],
      values: List[Array[Byte]],
      cfName: String,
      includesPrefix: Boolean,
      includesChecksum: Boolean,
      deriveCfName: Boolean): Unit = around(cfName, key, includesPrefix) {
    super.mergeList(key, values, cfName, includesPrefix, includesChecksum, deriveCfName)
  }

  override def deleteRange(
      beginKey: Array[Byte],
      endKey: Array[Byte],
      cfName: String,
      includesPrefix: Boolean,
      includesChecksum: Boolean): Unit =
    if (includesPrefix) aroundAll(super.deleteRange(beginKey, endKey, cfName, includesPrefix, includesChecksum))
    else aroundFamily(cfName)(super.deleteRange(beginKey, endKey, cfName, includesPrefix, includesChecksum))

  override def removeColFamilyIfExists(colFamilyName: String): Boolean =
    aroundFamily(colFamilyName)(super.removeColFamilyIfExists(colFamilyName))

  override def iterator(): NextIterator[ByteArrayPair] = {
    writeOut()
    scanned(super.iterator())
  }

  override def iterator(cfName: String): NextIterator[ByteArrayPair] =
    if (useColumnFamilies) scanned(super.iterator(cfName)) else super.iterator(cfName)

  override def prefixScan(prefix: Array[Byte], cfName: String): NextIterator[ByteArrayPair] = {
    writeOut()
    super.prefixScan(prefix, cfName)
  }

  override def rangeScan(
      startKey: Option[Array[Byte]],
      endKey: Option[Array[Byte]],
      cfName: String): NextIterator[ByteArrayPair] = {
    writeOut()
    super.rangeScan(startKey, endKey, cfName)
  }

  /** Such an iterator looks again for what was written after it was made: so nothing may stay here. */
  override private[state] def reusableIterator(cfName: String): RocksDBIterator = {
    if (isOn) cache.writeThrough()
    super.reusableIterator(cfName)
  }

  private def isOn: Boolean = !isPlain && {
    val here = cache
    here != null && here.isOpen
  }

  /** Puts down what the cache holds back: rows are read past it after this. */
  protected def writeOut(): Unit = if (isOn) cache.writeOut()

  /** The rows of a scan; what is looked up while it goes on fills no cache. */
  protected def scanned(rows: NextIterator[ByteArrayPair]): NextIterator[ByteArrayPair] =
    if (isOn) Scans.marked(rows) else rows

  private def around(family: String, key: Array[Byte], includesPrefix: Boolean)(change: => Unit): Unit =
    if (includesPrefix) aroundAll(change)
    else if (isOn) cache.around(family, key)(change)
    else change

  /** Keys with a prefix do not tell their family; they come from change logs, while it is shut. */
  private def aroundAll(change: => Unit): Unit = if (isOn) cache.aroundAll(change) else change

  private def aroundFamily[A](family: String)(change: => A): A =
    if (isOn) cache.aroundFamily(family)(change) else change

  private def readNow(family: String, key: Array[Byte]): Array[Byte] = {
    slowness.foreach(_.pause(family, key))
    super.get(key, family)
  }

  private def readAllNow(family: String, keys: Array[Array[Byte]]): Array[Array[Byte]] =
    if (settings.isSlow) keys.map(readNow(family, _)) else super.multiGet(keys, family).toArray

  private def writeNow(family: String, key: Array[Byte], value: Array[Byte]): Unit =
    if (value == null) super.remove(key, family, false, false, false)
    else super.put(key, value, family, false, false, false)

  private def newCache(): StoreCache = JvmResources.here.prefetch.open(
    run,
    dfsRootDir,
    new NativeStore {
      override def read(family: String, key: Array[Byte]): Array[Byte] = readNow(family, key)

      override def readAll(family: String, keys: Array[Array[Byte]]): Array[Array[Byte]] =
        readAllNow(family, keys)

      override def write(family: String, key: Array[Byte], value: Array[Byte]): Unit =
        writeNow(family, key, value)

      override def fetchKeysMax: Int = if (settings.isSlow) 2 else 8
    },
    settings)
}
