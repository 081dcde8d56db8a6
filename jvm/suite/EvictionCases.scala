package org.apache.spark.sql.execution.streaming.state.contract

import java.io.File

import org.apache.hadoop.conf.Configuration
import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.{SparkField, SparkMembers}
import org.apache.spark.sql.types.{LongType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String
import org.rocksdb.{FlushOptions, RocksDB => NativeRocksDB}

import penstock.commit.jvm.JvmResources
import penstock.eviction.{DeclaredScan, ScanCounts, StoreFamily, TimeColumn, TimedStore}

import Checks._
import Rows.key

/** Stores as ours are, with a Spark that keeps its native store where we do not look. */
final class MovedStoreProvider extends RocksDBStateStoreProvider {
  override protected def createRocksDB(
      dfsRootDir: String,
      conf: RocksDBConf,
      localRootDir: File,
      hadoopConf: Configuration,
      loggingId: String,
      useColumnFamilies: Boolean,
      enableStateStoreCheckpointIds: Boolean,
      partitionId: Int,
      eventForwarder: Option[RocksDBEventForwarder],
      uniqueId: Option[String]): RocksDB =
    new EvictingRocksDB(
      dfsRootDir, conf, localRootDir, hadoopConf, loggingId, useColumnFamilies,
      enableStateStoreCheckpointIds, partitionId, eventForwarder, uniqueId) {

      override protected def nativeStore: SparkField[RocksDB, NativeRocksDB] =
        new SparkField(classOf[RocksDB], "moved", classOf[NativeRocksDB])
    }
}

/** Reads for eviction leave RocksDB's cache to what batches look up. */
object EvictionCases extends Cases {
  private val RowCount = 500
  private val Text = "x" * 1000
  private val Family = StateStore.DEFAULT_COL_FAMILY_NAME
  private val timed = new StructType().add("at", LongType).add("text", StringType)

  private lazy val keys: Seq[UnsafeRow] = (0 until RowCount).map(number => key("a", number))

  /** Less than the blocks of the rows, and more than those of an index. */
  private val CachedBytesMin = RowCount * 500L

  private object NoCounts extends ScanCounts {
    override def skipped(): Unit = throw new Broken("the scan is skipped")
    override def made(): Unit = ()
  }

  check("a_scan_for_eviction_fills_no_cache", once) { rig =>
    val provider = inFiles(rig)
    val untouched = cachedBytes(provider)
    inTaskThatEvicts(provider) {
      val evicting = rig.getStore(provider, 1)
      equal("expired rows", evicting.iterator().size, 1)
      rig.commit(evicting)
    }
    holds(s"a scan caches nothing: ${cachedBytes(provider) - untouched} bytes") {
      cachedBytes(provider) - untouched < CachedBytesMin
    }
    val next = rig.getStore(provider, 2)
    equal("rows", next.iterator().size, RowCount)
    rig.commit(next)
    holds("a scan of anybody else does")(cachedBytes(provider) - untouched > CachedBytesMin)
  }

  check("look_ups_of_rows_that_are_evicted_fill_no_cache", once) { rig =>
    val provider = inFiles(rig)
    val untouched = cachedBytes(provider)
    val evicting = rig.getStore(provider, 1)
    rocksDBOf(provider).asInstanceOf[TimedStore].isEvicted(Family)
    lookUp(evicting)
    rig.commit(evicting)
    holds(s"they cache nothing: ${cachedBytes(provider) - untouched} bytes") {
      cachedBytes(provider) - untouched < CachedBytesMin
    }
    val next = rig.getStore(provider, 2)
    lookUp(next)
    rig.commit(next)
    holds("those of the next batch do")(cachedBytes(provider) - untouched > CachedBytesMin)
  }

  check("a_spark_without_the_native_store_scans_for_eviction_as_it_does_alone", once) { rig =>
    val variant = Variant("moved", s"contract.${classOf[MovedStoreProvider].getSimpleName}", changelog = true)
    val without = new StoreRig(variant, rig.root.resolveSibling(s"${rig.name}-moved"))
    try {
      val provider = inFiles(without)
      // The second scan would be skipped if anything was known of the first.
      Seq(1L, 2L).foreach { version =>
        inTaskThatEvicts(provider) {
          val evicting = without.getStore(provider, version)
          equal(s"rows of version $version", evicting.iterator().size, RowCount)
          without.commit(evicting)
        }
      }
    } finally without.stop()
  }

  /** A provider whose rows, with times from 0 on, are in files and not in memory. */
  private def inFiles(rig: StoreRig): StateStoreProvider = {
    val provider = rig.provider(values = timed, minDeltas = 100)
    val store = rig.getStore(provider, 0)
    val project = UnsafeProjection.create(timed)
    keys.zipWithIndex.foreach { case (key, time) =>
      store.put(key, project(InternalRow(time.toLong, UTF8String.fromString(Text))))
    }
    rig.commit(store)
    rig.settle()
    nativeOf(provider).flush(new FlushOptions().setWaitForFlush(true))
    provider
  }

  private def lookUp(store: StateStore): Unit =
    keys.foreach(key => holds("a row is there")(store.get(key) != null))

  /** As a task of an operator does that removes rows up to time 0. */
  private def inTaskThatEvicts(provider: StateStoreProvider)(body: => Unit): Unit = {
    val task = TaskContext.empty()
    val rows = StoreFamily(provider.stateStoreId.storeCheckpointLocation().toString, Family)
    val column = TimeColumn(inValue = true, fields = 2, ordinal = 0, windowFields = 0)
    TaskContext.setTaskContext(task)
    try {
      JvmResources.here.evictionScans.declare(task, Seq(DeclaredScan(rows, rows, column, untilUs = 0)), NoCounts)
      body
    } finally {
      task.markTaskCompleted(None)
      TaskContext.unset()
    }
  }

  private def cachedBytes(provider: StateStoreProvider): Long =
    nativeOf(provider).getProperty("rocksdb.block-cache-usage").toLong

  private def rocksDBOf(provider: StateStoreProvider): RocksDB =
    provider.asInstanceOf[RocksDBStateStoreProvider].rocksDB

  private def nativeOf(provider: StateStoreProvider): NativeRocksDB =
    SparkMembers.NativeStore.of(rocksDBOf(provider))
}
