package org.apache.spark.sql.execution.streaming.state.contract

import scala.util.Random

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.SparkField
import org.rocksdb.{FlushOptions, MutableColumnFamilyOptions, RocksDB => NativeRocksDB, Statistics}

import Checks._
import Rows._

/** Compaction goes on beside a commit; where it is told to, it rests while a checkpoint is taken. */
object CompactionCases extends Cases {
  private val FilesUntilCompaction = 8
  private val ValuesToCompact = 8000
  private val Seed = 20260114

  check("compaction_rests_until_the_lsm_checkpoint_is_taken_and_runs_beside_the_upload", allOf(held, full)) {
    rig =>
      rig.restartWith(pauseCompaction = true)
      val provider = rig.provider(scheme = "faulty", minDeltas = 100)
      rig.batch(provider, 0, ("a", 1) -> 1)
      rig.settle()
      val store = rig.getStore(provider, 1, force = true)
      put(store, ("b", 2) -> 2)
      rig.faults("faulty", "hang create")
      val native = nativeOf(provider)
      Points.held {
        rig.commit(store)
        eventually("the checkpoint is taken")(Threads.in("commit", "uploadSnapshot").isDefined)
        holds("compaction rests")(native.getOptions.disableAutoCompactions())
        flush(native)
        equal("files", filesOf(native) >= FilesUntilCompaction, true)
      }
      eventually("compaction is allowed")(!native.getOptions.disableAutoCompactions())
      flush(native)
      eventually("they are compacted while the upload hangs")(filesOf(native) < FilesUntilCompaction)
      holds("nothing of it is in the location")(!rig.hasVersion(2))
  }

  check("a_checkpoint_that_pauses_compaction_waits_for_one_that_is_running", once) { rig =>
    rig.restartWith(pauseCompaction = true)
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    val store = rig.getStore(provider, 1, force = true)
    val native = nativeOf(provider)
    val compacting = compactSlowly(native)
    rig.commit(store)
    waits(native, Threads.in("commit", "awaitCompaction").isDefined) {
      Threads.in("commit", "commitNow").isDefined
    }
    compacting.join()
    rig.settle()
    holds("its snapshot is there")(rig.hasVersion(2, ".zip"))
  }

  Seq(false, true).foreach { isPaused =>
    val name = if (isPaused) "longer_than_is_waited_for" else "beside_it"
    check(s"a_snapshot_is_right_though_a_compaction_runs_$name", once) { rig =>
      rig.restartWith(retrySeconds = if (isPaused) 1 else 600, pauseCompaction = isPaused)
      val provider = rig.provider(minDeltas = 100)
      rig.batch(provider, 0, ("a", 1) -> 1)
      rig.settle()
      val store = rig.getStore(provider, 1, force = true)
      put(store, ("b", 2) -> 2)
      val native = nativeOf(provider)
      val compacting = compactSlowly(native, times = 2)
      rig.commit(store)
      eventually("its snapshot is there")(rig.hasVersion(2, ".zip"))
      holds("the compaction runs on")(isCompacting(native))
      compacting.join()
      rig.settle()
      equal("version 2", values(rig, 2, ("a", 1), ("b", 2)), Seq(Some(1), Some(2)))
    }
  }

  Seq(false, true).foreach { isAwaited =>
    val name = if (isAwaited) "waits_for_compaction_where_it_is_told_to" else "does_not_wait_for_compaction"
    check(s"a_commit_without_a_snapshot_$name", once) { rig =>
      rig.restartWith(awaitCompaction = isAwaited)
      val provider = rig.provider(minDeltas = 100)
      rig.batch(provider, 0, ("a", 1) -> 1)
      rig.settle()
      val store = rig.getStore(provider, 1)
      val native = nativeOf(provider)
      val compacting = compactSlowly(native, times = if (isAwaited) 1 else 2)
      val committing = aside(rig.commit(store))
      if (isAwaited) {
        waits(native, Threads.isAnyIn(classOf[RocksDBInternals].getName, "awaitCompaction")) {
          committing.isOver
        }
      } else {
        eventually("it is made")(committing.isOver)
        holds("the compaction runs on")(isCompacting(native))
      }
      committing.join()
      compacting.join()
      rig.settle()
    }
  }

  check("a_commit_whose_thread_dies_before_it_begins_is_made_all_the_same", once) { rig =>
    rig.restartWith(awaitCompaction = true)
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    val store = rig.getStore(provider, 1, force = true)
    put(store, ("b", 2) -> 2)
    val compacting = compactSlowly(nativeOf(provider))
    rig.commit(store)
    Threads.kill("commit", "awaitCompaction")
    compacting.join()
    rig.settle()
    equal("version 2", values(rig, 2, ("a", 1), ("b", 2)), Seq(Some(1), Some(2)))
  }

  check("a_compaction_is_waited_for_no_longer_than_is_told", once) { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    val store = rig.getStore(provider, 1)
    val native = nativeOf(provider)
    val clock = new ManualClock
    val internals = new RocksDBInternals(rocksDBOf(provider), clock)
    val compacting = compactSlowly(native)
    val waiting = aside(internals.awaitCompaction(limitMs = 5000))
    clock.awaitSleeper()
    holds("it is waited for")(!waiting.isOver)
    clock.turn(ms = 6000)
    equal("whether none runs", waiting.join(), false)
    compacting.join()
    store.abort()
  }

  check("a_spark_without_statistics_reports_no_time_of_compactions", once) { rig =>
    val provider = rig.provider()
    val moved = new SparkField[RocksDB, Statistics](classOf[RocksDB], "moved", classOf[Statistics])
    equal("time", new RocksDBInternals(rocksDBOf(provider), new ManualClock, moved).compactionMs, 0L)
  }

  check("a_spark_without_the_native_store_pauses_and_awaits_no_compaction", once) { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    val store = rig.getStore(provider, 1)
    val native = nativeOf(provider)
    val moved = new SparkField[RocksDB, NativeRocksDB](classOf[RocksDB], "moved", classOf[NativeRocksDB])
    val internals = new RocksDBInternals(rocksDBOf(provider), new ManualClock, nativeStore = moved)
    val compacting = compactSlowly(native, times = 2)
    native.setOptions(MutableColumnFamilyOptions.builder().setDisableAutoCompactions(false).build())
    equal("whether none is known to run", internals.stopCompaction(limitMs = 5000), true)
    holds("the compaction runs on")(isCompacting(native))
    holds("compaction does not rest")(!native.getOptions.disableAutoCompactions())
    internals.allowCompaction(true)
    compacting.join()
    store.abort()
  }

  /** Until the compaction ends, what is not to begin before its end does not; it is waited for. */
  private def waits(native: NativeRocksDB, isWaiting: => Boolean)(hasBegun: => Boolean): Unit = {
    var wasSeenWaiting = false
    while (isCompacting(native)) {
      wasSeenWaiting ||= isWaiting
      val isEarly = hasBegun
      holds("nothing begins before the compaction ends")(!isEarly || !isCompacting(native))
      Thread.sleep(2)
    }
    holds("it was waited for")(wasSeenWaiting)
  }

  /** The values of keys; there is more in the store that is no row. */
  private def values(rig: StoreRig, version: Long, pairs: (String, Int)*): Seq[Option[Int]] = {
    val read = rig.getReadStore(rig.provider(), version)
    try pairs.map(pair => number(read.get(key(pair))))
    finally read.release()
  }

  private def isCompacting(native: NativeRocksDB): Boolean =
    native.getProperty("rocksdb.num-running-compactions").toLong > 0

  /** A compaction that takes a second or more: much for a slow codec to pack, and nothing to gain. */
  private def compactSlowly(native: NativeRocksDB, times: Int = 1): Aside[Unit] = {
    native.setOptions(MutableColumnFamilyOptions.builder().setDisableAutoCompactions(true).build())
    val random = new Random(Seed)
    Seq(1, 2).foreach { _ =>
      (1 to ValuesToCompact * times).foreach(n => native.put(s"garbage $n".getBytes, random.nextBytes(1000)))
      native.flush(new FlushOptions().setWaitForFlush(true))
    }
    // Not before: a flush would pack all of it too, and nobody waits for that.
    native.setOptions(option("compression", "kBZip2Compression"))
    val compacting = aside(native.compactRange())
    eventually("a compaction runs")(isCompacting(native))
    compacting
  }

  /** An option by the name that RocksDB itself has for it; its Java builder misspells this one. */
  private def option(name: String, value: String): MutableColumnFamilyOptions = {
    val texts = classOf[Array[String]]
    val make = classOf[MutableColumnFamilyOptions].getDeclaredConstructor(texts, texts)
    make.setAccessible(true)
    make.newInstance(Array(name), Array(value))
  }

  private def rocksDBOf(provider: StateStoreProvider): RocksDB =
    provider.asInstanceOf[RocksDBStateStoreProvider].rocksDB

  private def nativeOf(provider: StateStoreProvider): NativeRocksDB = {
    val field = classOf[RocksDB].getDeclaredField("db")
    field.setAccessible(true)
    field.get(rocksDBOf(provider)).asInstanceOf[NativeRocksDB]
  }

  private def flush(native: NativeRocksDB): Unit = (1 to FilesUntilCompaction).foreach { n =>
    native.put(s"garbage $n".getBytes, Array.emptyByteArray)
    native.flush(new FlushOptions().setWaitForFlush(true))
  }

  private def filesOf(native: NativeRocksDB): Long =
    native.getProperty("rocksdb.num-files-at-level0").toLong
}
