package org.apache.spark.sql.execution.streaming.state

import org.rocksdb.{HistogramType, MutableColumnFamilyOptions, RocksDB => NativeRocksDB, Statistics}

import penstock.{Clock, TryAgain}

/**
 * Four private members of Spark's RocksDB, read by reflection because nothing else tells when the
 * next snapshot is due, and nothing else reaches the native store, whose compaction is to rest
 * while an LSM checkpoint is taken.
 */
private[state] final class RocksDBInternals(db: RocksDB, clock: Clock) {
  import RocksDBInternals._

  def lastSnapshotVersion: Long = LastSnapshot.invoke(db).asInstanceOf[Long]

  def isSnapshotForced: Boolean =
    Forced.get(db).asInstanceOf[java.util.concurrent.atomic.AtomicBoolean].get()

  /** Time spent in compactions, counted from the start or from when Spark last reset it. */
  def compactionMs: Long =
    Stats.get(db).asInstanceOf[Statistics].getHistogramData(HistogramType.COMPACTION_TIME).getSum / 1000

  def allowCompaction(isAllowed: Boolean): Unit = native.foreach { store =>
    store.setOptions(
      MutableColumnFamilyOptions.builder().setDisableAutoCompactions(!isAllowed).build())
  }

  /** No compaction begins, and none is running any more, when this returns. */
  def stopCompaction(limitMs: Long): Unit = {
    allowCompaction(false)
    awaitCompaction(limitMs)
  }

  /** Asked again and again: RocksDB tells only listeners that it was opened with, and Spark opens it. */
  def awaitCompaction(limitMs: Long): Unit = native.foreach { store =>
    val end = clock.deadline(limitMs)
    while (store.getProperty("rocksdb.num-running-compactions").toLong > 0) {
      if (end.isOver) {
        throw new TryAgain("compaction_late", s"a compaction runs for more than ${limitMs / 1000} s")
      }
      clock.sleepMs(1)
    }
  }

  private def native: Option[NativeRocksDB] = Option(Native.get(db).asInstanceOf[NativeRocksDB])
}

private object RocksDBInternals {
  private val Native = field("db")
  private val LastSnapshot = {
    val found = classOf[RocksDB].getDeclaredMethod("lastSnapshotVersion")
    found.setAccessible(true)
    found
  }
  private val Stats = field("nativeStats")
  private val Forced = field("shouldForceSnapshot")

  private def field(name: String): java.lang.reflect.Field = {
    val found = classOf[RocksDB].getDeclaredField(name)
    found.setAccessible(true)
    found
  }
}
