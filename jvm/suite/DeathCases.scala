package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.spark.sql.execution.streaming.state.StateStore

import penstock.commit.channel.GaveUp
import penstock.commit.driver.ReleaseQueues

import Checks._
import Rows._

/** Threads of the plug-in that end in the middle of their work: another one goes on with it. */
object DeathCases extends Cases {
  private val both: Pairs = Map(("a", 1) -> 1, ("b", 2) -> 2)

  /** Batch 1, on a store that may be slow; `force` makes it wait for a snapshot. */
  private def batch(world: World, force: Boolean = false): StateStore = {
    val provider = world.provider(scheme = "faulty", minDeltas = 100)
    world.batch(provider, 0, ("a", 1) -> 1)
    world.settle()
    val store = world.getStore(provider, 1, force)
    put(store, ("b", 2) -> 2)
    store
  }

  private def pool(variant: Variant): String = if (variant.changelog) "copy" else "upload"

  /** A snapshot with a checksum is renamed by threads of Spark's, and their caller waits on. */
  private def ends(operation: String)(variant: Variant): Option[String] =
    Option.when(operation == "rename" && !variant.changelog && variant.format == 2)(
      "Spark renames snapshots of format 2 in threads of its own")

  Seq("create", "rename").foreach { operation =>
    check(
      s"state_whose_thread_dies_in_a_${operation}_is_made_durable_by_another",
      allOf(held, ends(operation))) { world =>
      val store = batch(world)
      world.faults("faulty", s"hang $operation")
      world.commit(store)
      Threads.kill(pool(world.variant), "operation")
      world.faults("faulty")
      equal("version 2", world.readAnew(2), both)
    }
  }

  check("a_snapshot_whose_thread_dies_is_uploaded_by_another", held) { world =>
    val store = batch(world, force = true)
    world.faults("faulty", "hang create")
    world.commit(store)
    Threads.kill("upload", "operation")
    world.faults("faulty")
    equal("version 2", world.readAnew(2), both)
    holds("its snapshot is there")(world.hasVersion(2, ".zip"))
  }

  check("state_is_acknowledged_though_the_thread_that_copied_it_is_dead", allOf(held, changelog)) { world =>
    val store = batch(world)
    Points.held {
      world.commit(store)
      Threads.kill("copy", "reach")
      holds("it is there")(world.hasVersion(2))
    }
    equal("version 2", world.readAnew(2), both)
  }

  check("offsets_whose_thread_dies_are_released_by_another", held) { world =>
    val store = batch(world)
    world.location.hold(1)
    world.commit(store)
    Threads.kill("release", "putOffsets")
    world.location.letGo()
    equal("version 2", world.readAnew(2), both)
  }

  check("what_waits_for_its_run_goes_on_though_the_thread_that_asks_is_dead", held) { world =>
    val store = batch(world)
    world.location.hold(1)
    world.commit(store)
    Threads.kill("release-poll", "run")
    world.location.letGo()
    equal("version 2", world.readAnew(2), both)
  }

  check("a_commit_that_is_cut_in_the_middle_stops_the_run_and_is_made_by_the_next", allOf(held, full)) {
    world =>
      val store = batch(world, force = true)
      Points.held {
        world.commit(store)
        Threads.kill("commit", "uploadSnapshot")
      }
      fails("the run", "ended in the middle")(eventually("the run has stopped") {
        world.queue.check()
        false
      })
      world.restart()
      val again = world.getStore(world.provider(), 1)
      put(again, ("b", 2) -> 2)
      world.commit(again)
      equal("version 2", world.readAnew(2), both)
  }

  check("nothing_waits_for_a_run_that_has_stopped", allOf(held, changelog)) { world =>
    val store = batch(world)
    world.location.hold(1)
    world.commit(store)
    eventually("it waits for its offsets")(Threads.in("release-poll", "run").isDefined)
    world.queue.receive(GaveUp(world.queue.run, "a test has given it up"))
    eventually("nobody asks for it any more")(Threads.in("release-poll", "run").isEmpty)
    eventually("nothing of it is held")(world.holdsNothing())
  }

  check("the_uploads_of_a_run_that_has_ended_hold_up_nobody", allOf(held, full)) { world =>
    world.restartWith(retrySeconds = 600)
    val store = batch(world, force = true)
    world.location.hold(1)
    world.commit(store)
    ReleaseQueues.ended(world.queue.run)
    aside(world.restart()).join()
    equal("version 1", world.readAnew(1), Map(("a", 1) -> 1): Pairs)
  }
}
