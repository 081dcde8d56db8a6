// Scala because: it reads Java objects inside Spark's RocksDB, at every commit of every store.
package org.apache.spark.sql.execution.streaming.state

import org.apache.spark.sql.penstock.{SparkField, SparkMembers}
import org.rocksdb.{HistogramType, MutableColumnFamilyOptions, RocksDB => NativeRocksDB, Statistics}

import penstock.Clock

/** What Spark's RocksDB does not tell: when the next snapshot is due, and what compactions do. */
private[state] final class RocksDBInternals(
    db: RocksDB,
    clock: Clock,
    statistics: SparkField[RocksDB, Statistics] = SparkMembers.NativeStatistics,
    nativeStore: SparkField[RocksDB, NativeRocksDB] = SparkMembers.NativeStore) {
  def lastSnapshotVersion: Long = SparkMembers.LastSnapshotVersion.of(db)

  def isSnapshotForced: Boolean = SparkMembers.SnapshotForced.of(db).get()

  /**
   * Time spent in compactions, counted from the start or from when Spark last reset it; 0 where this
   * version of Spark keeps no statistics.
   */
  def compactionMs: Long = statistics.ifAny(db).fold(0L) { counted =>
    counted.getHistogramData(HistogramType.COMPACTION_TIME).getSum / 1000
  }

  /** Of no effect where this version of Spark keeps the native store elsewhere. */
  def allowCompaction(isAllowed: Boolean): Unit = native.foreach { store =>
    store.setOptions(
      MutableColumnFamilyOptions.builder().setDisableAutoCompactions(!isAllowed).build())
  }

  /** No compaction begins, and none is running any more, when this returns; else as below. */
  def stopCompaction(limitMs: Long): Boolean = {
    allowCompaction(false)
    awaitCompaction(limitMs)
  }

  /**
   * Whether no compaction is running, after at most `limitMs`. Asked again and again: RocksDB tells
   * only listeners that it was opened with, and Spark opens it. Where Spark keeps the native store
   * elsewhere nobody can be asked, and nothing is waited for.
   */
  def awaitCompaction(limitMs: Long): Boolean = native.forall { store =>
    val end = clock.deadline(limitMs)
    def isRunning: Boolean = store.getProperty("rocksdb.num-running-compactions").toLong > 0
    while (isRunning && !end.isOver) clock.sleepMs(1)
    !isRunning
  }

  private def native: Option[NativeRocksDB] = nativeStore.ifAny(db)
}

/** Time of a store's compactions: its counter at the last look, and what is yet to be reported. */
private[state] final case class Compaction(countedMs: Long, untoldMs: Long) {
  def next(nowMs: Long): Compaction = Compaction(nowMs, untoldMs + math.max(0, nowMs - countedMs))

  def from(nowMs: Long): Compaction = copy(countedMs = nowMs)
}
