package org.apache.spark.sql.execution.streaming.state.contract

import scala.util.control.NonFatal

import org.apache.spark.sql.execution.streaming.state._

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

  private def zombie(world: World, scheme: String = "plain", minDeltas: Int = 100): StateStore = {
    world.batch(world.provider(), 0, ("a", 1) -> 1)
    world.settle()
    world.begin(1)
    val store = world.getStore(world.provider(scheme = scheme, minDeltas = minDeltas), 1)
    put(store, ("a", 1) -> 99, ("zombie", 0) -> 99)
    store
  }

  private def winner(world: World, minDeltas: Int = 100): StateStore = {
    val store = world.getStore(world.provider(minDeltas = minDeltas), 1)
    put(store, ("winner", 0) -> 2)
    store
  }

  /** Maintenance beside all else, given time to begin; the end of its run may cut it short. */
  private def upload(world: World, store: StateStore): Aside[Unit] = {
    val begun = aside {
      try world.providerOf(store).doMaintenance()
      catch { case NonFatal(_) => }
    }
    Thread.sleep(300)
    begun
  }

  private def isWon(world: World): Unit = {
    equal("version 2", world.readAnew(2), won)
    world.batch(world.provider(), 2, ("b", 3) -> 3)
    equal("version 3", world.readAnew(3), won + (("b", 3) -> 3))
  }

  check("a_zombie_that_commits_after_the_batch_changes_nothing", guarded) { world =>
    val late = zombie(world)
    world.commit(winner(world))
    world.settle()
    late.commit()
    Thread.sleep(300)
    isWon(world)
  }

  check("a_zombie_that_commits_before_the_batch_does_changes_nothing", guarded) { world =>
    val late = zombie(world)
    val store = winner(world)
    late.commit()
    world.commit(store)
    isWon(world)
  }

  check("a_zombie_that_aborts_takes_nothing_with_it", rocksDB) { world =>
    val late = zombie(world)
    val store = winner(world)
    late.abort()
    world.commit(store)
    isWon(world)
  }

  check("an_attempt_that_begins_later_and_aborts_takes_nothing_with_it", rocksDB) { world =>
    world.batch(world.provider(), 0, ("a", 1) -> 1)
    world.settle()
    val store = winner(world)
    world.begin(1)
    val later = world.getStore(world.provider(minDeltas = 100), 1)
    put(later, ("zombie", 0) -> 99)
    later.abort()
    world.commit(store)
    isWon(world)
  }

  check(
    "the_ack_of_a_write_that_was_superseded_does_not_count",
    allOf(held, guarded, changelog, single)) { world =>
    // Both attempts have written the same file, and neither copy of it gets through.
    val late = zombie(world, scheme = "late")
    world.faults("late", "hang rename")
    late.commit()
    val store = world.getStore(world.provider(scheme = "faulty", minDeltas = 100), 1)
    put(store, ("winner", 0) -> 2)
    world.faults("faulty", "hang rename")
    world.commit(store)
    world.faults("late")
    eventually("the first copy is there")(world.hasVersion(2, ".changelog"))
    Thread.sleep(1000)
    val isEarly = world.location.has("commits/1")
    world.faults("faulty")
    holds("the batch waits for the write that counts")(!isEarly)
    isWon(world)
  }

  check("a_zombie_that_never_ends_holds_up_nobody", rocksDB) { world =>
    val endless = zombie(world)
    world.commit(winner(world))
    val provider = world.provider()
    (2 until 5).foreach(v => world.batch(provider, v, ("n", v) -> v))
    equal("version 5", world.readAnew(5).size, 5)
    endless.abort()
  }

  check("a_zombie_that_hangs_in_its_last_step_changes_nothing", guarded) { world =>
    val late = zombie(world, scheme = "late")
    val store = winner(world)
    world.faults("late", "hang rename")
    val hanging = aside(late.commit())
    eventually("it hangs")(Threads.isAnyIn("penstock.testing.DelayedStore", "operation"))
    world.commit(store)
    world.faults("late")
    hanging.join()
    isWon(world)
  }

  check("the_snapshot_of_an_attempt_that_lost_is_not_loaded", allOf(named, guarded, changelog)) { world =>
    val lost = zombie(world, minDeltas = 1)
    lost.commit()
    eventually("its changelog is there")(world.hasVersion(2, ".changelog"))
    val uploading = upload(world, lost)
    world.commit(winner(world))
    uploading.join()
    isWon(world)
  }

  check("the_snapshot_of_a_batch_that_failed_is_not_loaded", allOf(named, guarded, changelog)) { world =>
    val failed = zombie(world, minDeltas = 1)
    failed.commit()
    eventually("its changelog is there")(world.hasVersion(2, ".changelog"))
    val uploading = upload(world, failed)
    world.restart()
    uploading.join()
    world.begin(1)
    world.commit(winner(world))
    isWon(world)
  }
}
