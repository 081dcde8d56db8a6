package org.apache.spark.sql.execution.streaming.state.contract

import scala.util.control.NonFatal

import org.apache.spark.sql.execution.streaming.state._

import penstock.checkpoint.location.StateFile
import penstock.commit.PieceDurable
import penstock.commit.channel.{Durable, MadeDurable, Writer}

import Checks._
import Rows._

/** An attempt that goes on after Spark has given it up and another one has won. */
object ZombieCases extends Cases {
  private val won: Pairs = Map(("a", 1) -> 1, ("winner", 0) -> 2)

  /** Spark's own answer to these is format 2. */
  private def guarded(variant: Variant): Option[String] =
    Option.when(!variant.isRocksDB || (variant.format == 1 && !variant.queue))(
      "in format 1 attempts write the same files, as Spark has it")

  /** A snapshot has no other name in format 1, whoever makes it, as Spark has it. */
  private def named(variant: Variant): Option[String] =
    Option.when(variant.format == 1)("in format 1 snapshots of all attempts have one name")

  private def zombie(rig: StoreRig, scheme: String = "plain", minDeltas: Int = 100): StateStore = {
    rig.batch(rig.provider(), 0, ("a", 1) -> 1)
    rig.settle()
    rig.begin(1)
    val store = rig.getStore(rig.provider(scheme = scheme, minDeltas = minDeltas), 1)
    put(store, ("a", 1) -> 99, ("zombie", 0) -> 99)
    store
  }

  private def winner(rig: StoreRig, minDeltas: Int = 100): StateStore = {
    val store = rig.getStore(rig.provider(minDeltas = minDeltas), 1)
    put(store, ("winner", 0) -> 2)
    store
  }

  /** Maintenance beside all else, given time to begin; the end of its run may cut it short. */
  private def upload(rig: StoreRig, store: StateStore): Aside[Unit] = {
    val begun = aside {
      try rig.providerOf(store).doMaintenance()
      catch { case NonFatal(_) => }
    }
    Thread.sleep(300)
    begun
  }

  private def isWon(rig: StoreRig): Unit = {
    equal("version 2", rig.readAnew(2), won)
    rig.batch(rig.provider(), 2, ("b", 3) -> 3)
    equal("version 3", rig.readAnew(3), won + (("b", 3) -> 3))
  }

  check("a_zombie_that_commits_after_the_batch_changes_nothing", guarded) { rig =>
    val late = zombie(rig)
    rig.commit(winner(rig))
    rig.settle()
    late.commit()
    Thread.sleep(300)
    isWon(rig)
  }

  check("a_zombie_that_commits_before_the_batch_does_changes_nothing", guarded) { rig =>
    val late = zombie(rig)
    val store = winner(rig)
    late.commit()
    rig.commit(store)
    isWon(rig)
  }

  check("a_zombie_that_aborts_takes_nothing_with_it", rocksDB) { rig =>
    val late = zombie(rig)
    val store = winner(rig)
    late.abort()
    rig.commit(store)
    isWon(rig)
  }

  check("an_attempt_that_begins_later_and_aborts_takes_nothing_with_it", rocksDB) { rig =>
    rig.batch(rig.provider(), 0, ("a", 1) -> 1)
    rig.settle()
    val store = winner(rig)
    rig.begin(1)
    val later = rig.getStore(rig.provider(minDeltas = 100), 1)
    put(later, ("zombie", 0) -> 99)
    later.abort()
    rig.commit(store)
    isWon(rig)
  }

  check(
    "the_ack_of_a_write_that_was_superseded_does_not_count",
    allOf(held, guarded, changelog, single)) { rig =>
    // Both attempts have written the same file, and neither copy of it gets through.
    val late = zombie(rig, scheme = "late")
    rig.faults("late", "hang rename")
    late.commit()
    val store = rig.getStore(rig.provider(scheme = "faulty", minDeltas = 100), 1)
    put(store, ("winner", 0) -> 2)
    rig.faults("faulty", "hang rename")
    rig.commit(store)
    rig.faults("late")
    eventually("the first copy is there")(rig.hasVersion(2, ".changelog"))
    // An ack that was on its way when the other attempt began to write.
    val superseded = PieceDurable(1, StateFile.pieceOf("0", "0", "default", 2), Writer.name, 1)
    rig.queue.receive(MadeDurable(rig.queue.run, Seq(Durable(superseded, Nil, Map.empty))))
    Thread.sleep(1000)
    val isEarly = rig.location.has("commits/1")
    rig.faults("faulty")
    holds("the batch waits for the write that counts")(!isEarly)
    isWon(rig)
  }

  check("a_zombie_that_never_ends_holds_up_nobody", rocksDB) { rig =>
    val endless = zombie(rig)
    rig.commit(winner(rig))
    val provider = rig.provider()
    (2 until 5).foreach(v => rig.batch(provider, v, ("n", v) -> v))
    equal("version 5", rig.readAnew(5).size, 5)
    endless.abort()
  }

  check("a_zombie_that_hangs_in_its_last_step_changes_nothing", guarded) { rig =>
    val late = zombie(rig, scheme = "late")
    val store = winner(rig)
    rig.faults("late", "hang rename")
    val hanging = aside(late.commit())
    eventually("it hangs")(Threads.isAnyIn("penstock.testing.DelayedStore", "operation"))
    rig.commit(store)
    rig.faults("late")
    hanging.join()
    isWon(rig)
  }

  check("the_snapshot_of_an_attempt_that_lost_is_not_loaded", allOf(named, guarded, changelog)) { rig =>
    val lost = zombie(rig, minDeltas = 1)
    lost.commit()
    eventually("its changelog is there")(rig.hasVersion(2, ".changelog"))
    val uploading = upload(rig, lost)
    rig.commit(winner(rig))
    uploading.join()
    isWon(rig)
  }

  check("the_snapshot_of_a_batch_that_failed_is_not_loaded", allOf(named, guarded, changelog)) { rig =>
    val failed = zombie(rig, minDeltas = 1)
    failed.commit()
    eventually("its changelog is there")(rig.hasVersion(2, ".changelog"))
    val uploading = upload(rig, failed)
    rig.restart()
    uploading.join()
    rig.begin(1)
    rig.commit(winner(rig))
    isWon(rig)
  }
}
