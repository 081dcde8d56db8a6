// Scala because: it reads Java objects inside Spark's RocksDB, at every commit of every store.
package org.apache.spark.sql.execution.streaming.state

import org.apache.spark.sql.penstock.SparkMembers
import org.rocksdb.{HistogramType, MutableColumnFamilyOptions, RocksDB => NativeRocksDB}

import penstock.{Clock, TryAgain}

/** What Spark's RocksDB does not tell: when the next snapshot is due, and what compactions do. */
private[state] final class RocksDBInternals(db: RocksDB, clock: Clock) {
  def lastSnapshotVersion: Long = SparkMembers.LastSnapshotVersion.of(db)

  def isSnapshotForced: Boolean = SparkMembers.SnapshotForced.of(db).get()

  /** Time spent in compactions, counted from the start or from when Spark last reset it. */
  def compactionMs: Long =
    SparkMembers.NativeStatistics.of(db).getHistogramData(HistogramType.COMPACTION_TIME).getSum / 1000

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

  private def native: Option[NativeRocksDB] = Option(SparkMembers.NativeStore.of(db))
}
