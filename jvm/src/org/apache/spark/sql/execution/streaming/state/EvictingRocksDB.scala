// Scala because: it extends Spark's RocksDB class, whose writes and scans it watches.
package org.apache.spark.sql.execution.streaming.state

import java.io.File

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.{SparkField, SparkMembers}
import org.apache.spark.util.NextIterator
import org.rocksdb.{ReadOptions, RocksDB => NativeRocksDB}

import penstock.commit.jvm.JvmResources
import penstock.eviction.{RunningScan, StoreFamily, TaskScans, TimedStore}

/**
 * A RocksDB that knows of the families that operators evict from a time before which they have no
 * row. A scan for eviction that could remove nothing is answered with no rows; another one is given
 * the expired rows only. What it knows is in memory: nothing is written that Spark would not write,
 * and a store that is opened again begins with nothing known.
 *
 * Only scans that a task has declared (`TaskScans`) are touched, and none where this version of Spark
 * keeps the native store elsewhere.
 */
private[state] abstract class EvictingRocksDB(
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
    extends CachedRocksDB(
      dfsRootDir,
      conf,
      localRootDir,
      hadoopConf,
      loggingId,
      useColumnFamilies,
      enableStateStoreCheckpointIds,
      partitionId,
      eventForwarder,
      uniqueId)
    with TimedStore {

  private val times = mutable.Map.empty[String, FamilyTimes]
  private var isCacheSpared = false

  override def load(
      version: Long,
      stateStoreCkptId: Option[String],
      readOnly: Boolean,
      loadEmpty: Boolean): RocksDB = {
    val before = native
    val loaded = super.load(version, stateStoreCkptId, readOnly, loadEmpty)
    if (!native.exists(now => before.exists(_ eq now))) times.clear()
    spareCache(false)
    watchFamilies()
    loaded
  }

  override def loadFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      snapshotVersionStateStoreCkptId: Option[String],
      endVersionStateStoreCkptId: Option[String]): RocksDB = {
    times.clear()
    super.loadFromSnapshot(
      snapshotVersion, endVersion, snapshotVersionStateStoreCkptId, endVersionStateStoreCkptId)
  }

  /** The aborted writes stay in the native store until it is opened again. */
  override def rollback(): Unit = {
    times.clear()
    super.rollback()
  }

  override def put(
      key: Array[Byte],
      value: Array[Byte],
      cfName: String,
      includesPrefix: Boolean,
      deriveCfName: Boolean,
      includesChecksum: Boolean): Unit = {
    if (times.nonEmpty) {
      if (includesPrefix || includesChecksum) times.clear()
      else times.get(cfName).foreach(_.put(key, value))
    }
    super.put(key, value, cfName, includesPrefix, deriveCfName, includesChecksum)
  }

  override def putList(
      key: Array[Byte],
      values: List[Array[Byte]],
      cfName: String,
      includesPrefix: Boolean,
      includesChecksum: Boolean,
      deriveCfName: Boolean): Unit = {
    times.clear()
    super.putList(key, values, cfName, includesPrefix, includesChecksum, deriveCfName)
  }

  override def merge(
      key: Array[Byte],
      value: Array[Byte],
      cfName: String,
      includesPrefix: Boolean,
      deriveCfName: Boolean,
      includesChecksum: Boolean): Unit = {
    times.clear()
    super.merge(key, value, cfName, includesPrefix, deriveCfName, includesChecksum)
  }

  override def mergeList(
      key: Array[Byte],
      values: List[Array[Byte]],
      cfName: String,
      includesPrefix: Boolean,
      includesChecksum: Boolean,
      deriveCfName: Boolean): Unit = {
    times.clear()
    super.mergeList(key, values, cfName, includesPrefix, includesChecksum, deriveCfName)
  }

  override def remove(
      key: Array[Byte],
      cfName: String,
      includesPrefix: Boolean,
      deriveCfName: Boolean,
      includesChecksum: Boolean): Unit = {
    if (times.nonEmpty && !includesPrefix) times.get(cfName).foreach(_.removed(key))
    super.remove(key, cfName, includesPrefix, deriveCfName, includesChecksum)
  }

  override def iterator(): NextIterator[ByteArrayPair] =
    scan(StateStore.DEFAULT_COL_FAMILY_NAME)(super.iterator())

  /** Without families Spark's method calls the one above. */
  override def iterator(cfName: String): NextIterator[ByteArrayPair] =
    if (useColumnFamilies) scan(cfName)(super.iterator(cfName)) else super.iterator(cfName)

  /** By a scan of the rows themselves, which stops at the first that is expired. */
  override def hasNothingUntil(family: String, untilUs: Long): Boolean =
    times.get(family).exists { known =>
      known.maySkip(untilUs) || rowsOf(family).exists(known.measure(_, untilUs))
    }

  override def isEvicted(family: String): Unit = {
    times.get(family).foreach(_.forgotten())
    // Each of its rows is looked up now, and most of them for the last time in this batch.
    spareCache(true)
  }

  private def scan(family: String)(asSpark: => NextIterator[ByteArrayPair]): NextIterator[ByteArrayPair] = {
    val task = scansOfThisTask
    task.flatMap(_.scanOf(StoreFamily(dfsRootDir, family))) match {
      case Some(running) if running.scan.isDirect =>
        times.get(family).fold(asSpark)(known => direct(running, known, rowsOf(family), asSpark))
      case Some(running) =>
        byLookUp(running, task.flatMap(_.storeAt(running.scan.timed.location)), asSpark)
      case None => asSpark
    }
  }

  /** The rows that are gone through have the times. */
  private def direct(
      running: RunningScan,
      known: FamilyTimes,
      uncached: => Option[StoredRows],
      asSpark: => NextIterator[ByteArrayPair]): NextIterator[ByteArrayPair] =
    if (known.maySkip(running.scan.untilUs)) {
      running.counts.skipped()
      NoRows.iterator
    } else {
      running.counts.made()
      known.begun(running.scan.untilUs)
      scanned(new ExpiredRows(uncached.getOrElse(new SparkRows(asSpark)), known))
    }

  /** Rows of another family have the times, and are looked up one by one. */
  private def byLookUp(
      running: RunningScan,
      timed: Option[TimedStore],
      asSpark: => NextIterator[ByteArrayPair]): NextIterator[ByteArrayPair] = {
    val family = running.scan.timed.family
    if (timed.exists(_.hasNothingUntil(family, running.scan.untilUs))) {
      running.counts.skipped()
      NoRows.iterator
    } else {
      running.counts.made()
      timed.foreach(_.isEvicted(family))
      rowsOf(running.scan.scanned.family).fold(asSpark)(rows => scanned(new AllRows(rows)))
    }
  }

  /** None where rows have a checksum, which Spark checks, or where Spark keeps families elsewhere. */
  private def rowsOf(family: String): Option[StoredRows] = {
    val prefix =
      if (!useColumnFamilies) Some(Array.emptyByteArray)
      else
        SparkMembers.ColumnFamilies.ifAny(this).flatMap(families => Option(families.get(family))).map(info =>
          RocksDBStateStoreProvider.getColumnFamilyIdAsBytes(info.cfId))
    for (bytes <- prefix if !conf.rowChecksumEnabled; store <- native) yield {
      writeOut()
      UncachedRows.of(store, bytes)
    }
  }

  /** The families whose times this task's operators go by are watched from their first write on. */
  private def watchFamilies(): Unit = for (task <- scansOfThisTask; store <- native) {
    task.opened(dfsRootDir, this)
    val isEmpty = UncachedRows.isEmpty(store)
    task.columnsOf(dfsRootDir).foreach { case (family, column) =>
      if (!times.get(family).exists(_.column == column)) {
        times(family) = new FamilyTimes(column, isEmpty)
      }
    }
  }

  /** Whether what Spark looks up from now on stays out of RocksDB's cache of blocks. */
  private def spareCache(isSpared: Boolean): Unit = if (isSpared != isCacheSpared) {
    SparkMembers.StoreReadOptions.ifAny(this).foreach { options: ReadOptions =>
      options.setFillCache(!isSpared)
    }
    isCacheSpared = isSpared
  }

  private def scansOfThisTask: Option[TaskScans] = JvmResources.here.evictionScans.ofThisTask

  /** Where Spark keeps the native store. */
  protected def nativeStore: SparkField[RocksDB, NativeRocksDB] = SparkMembers.NativeStore

  private def native: Option[NativeRocksDB] = nativeStore.ifAny(this)
}
