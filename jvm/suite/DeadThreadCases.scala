package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.spark.sql.execution.streaming.state.StateStore

import penstock.commit.channel.GaveUp
import penstock.commit.jvm.JvmResources

import Checks._
import Rows._

/** Threads of the plug-in that end in the middle of their work: another one goes on with it. */
object DeadThreadCases extends Cases {
  private val both: Pairs = Map(("a", 1) -> 1, ("b", 2) -> 2)

  /** Batch 1, on a store that may be slow; `force` makes it wait for a snapshot. */
  private def batch(rig: StoreRig, force: Boolean = false): StateStore = {
    val provider = rig.provider(scheme = "faulty", minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    val store = rig.getStore(provider, 1, force)
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
      allOf(held, ends(operation))) { rig =>
      val store = batch(rig)
      rig.faults("faulty", s"hang $operation")
      rig.commit(store)
      Threads.kill(pool(rig.variant), "operation")
      rig.faults("faulty")
      equal("version 2", rig.readAnew(2), both)
    }
  }

  check("a_snapshot_whose_thread_dies_is_uploaded_by_another", held) { rig =>
    val store = batch(rig, force = true)
    rig.faults("faulty", "hang create")
    rig.commit(store)
    Threads.kill("upload", "operation")
    rig.faults("faulty")
    equal("version 2", rig.readAnew(2), both)
    holds("its snapshot is there")(rig.hasVersion(2, ".zip"))
  }

  check("state_is_acknowledged_though_the_thread_that_copied_it_is_dead", allOf(held, changelog)) { rig =>
    val store = batch(rig)
    Points.held {
      rig.commit(store)
      Threads.kill("copy", "reach")
      holds("it is there")(rig.hasVersion(2))
    }
    equal("version 2", rig.readAnew(2), both)
  }

  check("offsets_whose_thread_dies_are_released_by_another", held) { rig =>
    val store = batch(rig)
    rig.location.hold(1)
    rig.commit(store)
    Threads.kill("release", "putOffsets")
    rig.location.letGo()
    equal("version 2", rig.readAnew(2), both)
  }

  check("what_waits_for_its_run_goes_on_though_the_thread_that_asks_is_dead", held) { rig =>
    val store = batch(rig)
    rig.location.hold(1)
    rig.commit(store)
    Threads.kill("release-poll", "run")
    rig.location.letGo()
    equal("version 2", rig.readAnew(2), both)
  }

  check("a_commit_that_is_cut_in_the_middle_stops_the_run_and_is_made_by_the_next", allOf(held, full)) {
    rig =>
      val store = batch(rig, force = true)
      Points.held {
        rig.commit(store)
        Threads.kill("commit", "uploadSnapshot")
      }
      fails("the run", "ended in the middle")(eventually("the run has stopped") {
        rig.queue.check()
        false
      })
      rig.restart()
      val again = rig.getStore(rig.provider(), 1)
      put(again, ("b", 2) -> 2)
      rig.commit(again)
      equal("version 2", rig.readAnew(2), both)
  }

  check("nothing_waits_for_a_run_that_has_stopped", allOf(held, changelog)) { rig =>
    val store = batch(rig)
    rig.location.hold(1)
    rig.commit(store)
    eventually("it waits for its offsets")(Threads.in("release-poll", "run").isDefined)
    rig.queue.receive(GaveUp(rig.queue.run, "a test has given it up"))
    eventually("nobody asks for it any more")(Threads.in("release-poll", "run").isEmpty)
    eventually("nothing of it is held")(rig.holdsNothing())
  }

  check("the_uploads_of_a_run_that_has_ended_hold_up_nobody", allOf(held, full)) { rig =>
    rig.restartWith(retrySeconds = 600)
    val store = batch(rig, force = true)
    rig.location.hold(1)
    rig.commit(store)
    JvmResources.here.endRun(rig.queue.run)
    aside(rig.restart()).join()
    equal("version 1", rig.readAnew(1), Map(("a", 1) -> 1): Pairs)
  }
}
