package org.apache.spark.sql.execution.streaming.state.contract

import scala.util.control.NonFatal

import Checks._
import Rows._

/** A checkpoint store that fails, and what is left when it works again. */
object FaultCases extends Cases {
  private val versionOne: Pairs = Map(("a", 1) -> 1)

  /** An attempt at batch 1, given up as Spark gives up a task that failed. */
  private def attempt(rig: StoreRig, number: Int)(isOver: => Unit): Unit = {
    val provider = rig.provider(scheme = "faulty")
    val store = rig.getStore(provider, 1)
    try {
      put(store, ("a", 1) -> number, ("attempt", number) -> number)
      rig.commit(store)
      isOver
    } catch {
      case NonFatal(e) =>
        if (!store.hasCommitted) store.abort()
        throw e
    }
  }

  private val faults = Seq(
    "creating" -> "fail create",
    "closing" -> "fail write",
    "renaming" -> "fail rename",
    "writing" -> "full")

  faults.foreach { case (doing, fault) =>
    check(s"a_commit_fails_when_${doing}_a_file_does", direct) { rig =>
      rig.batch(rig.provider(scheme = "faulty"), 0, ("a", 1) -> 1)
      rig.faults("faulty", fault)
      fails(s"a commit with '$fault'", "scripted fault")(attempt(rig, 7)(()))
      rig.faults("faulty")
      equal("version 1", rig.readAnew(1), versionOne)
      attempt(rig, 8)(())
      equal("version 2", rig.readAnew(2), Map(("a", 1) -> 8, ("attempt", 8) -> 8): Pairs)
    }

    check(s"a_run_stops_when_${doing}_a_file_goes_on_failing", held) { rig =>
      rig.batch(rig.provider(scheme = "faulty"), 0, ("a", 1) -> 1)
      rig.settle()
      rig.restartImpatient()
      rig.faults("faulty", fault)
      fails(s"a run with '$fault'", "scripted fault") {
        attempt(rig, 7)(eventually("the run has stopped") {
          rig.queue.check()
          false
        })
      }
      holds("its batch is not committed")(!rig.location.has("commits/1"))
      rig.restart()
      equal("version 1", rig.readAnew(1), versionOne)
      attempt(rig, 8)(())
      equal("version 2", rig.readAnew(2), Map(("a", 1) -> 8, ("attempt", 8) -> 8): Pairs)
    }
  }

  check("a_write_that_fails_for_a_moment_is_made_again", held) { rig =>
    val provider = rig.provider(scheme = "faulty", minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.faults("faulty", "fail rename")
    rig.batch(provider, 1, ("b", 2) -> 2)
    Thread.sleep(200)
    holds("it is not there yet")(!rig.hasVersion(2))
    rig.faults("faulty")
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_load_fails_when_it_cannot_see_what_is_there") { rig =>
    rig.batch(rig.provider(), 0, ("a", 1) -> 1)
    rig.batch(rig.provider(), 1, ("b", 2) -> 2)
    rig.settle()
    val expected: Pairs = Map(("a", 1) -> 1, ("b", 2) -> 2)
    Seq("fail status", "fail open", "fail list").foreach { fault =>
      val provider = rig.provider(scheme = "faulty")
      rig.faults("faulty", fault)
      fails(s"a load with '$fault'", "scripted fault")(rig.read(provider, 2))
      rig.faults("faulty")
      equal(s"version 2 after '$fault'", rig.read(provider, 2), expected)
    }
  }

  private def summed(variant: Variant): Option[String] =
    Option.when(variant.format == 1)("format 1 keeps no checksum of its files")

  check("checksums_may_be_turned_off_and_on_between_batches", summed) { rig =>
    val settings = Seq((true, 4), (false, 4), (true, 0))
    settings.zipWithIndex.foreach { case ((isOn, threads), n) =>
      rig.setChecksums(isOn, threads)
      val store = rig.getStore(rig.provider(), n.toLong, force = true)
      put(store, ("k", n) -> n)
      rig.commit(store)
      rig.settle()
      equal(s"a checksum of version ${n + 1}", rig.hasChecksum(n + 1L), isOn)
    }
    equal("version 3", rig.readAnew(3), settings.indices.map(n => ("k", n) -> n).toMap)
  }

  check("a_file_of_a_state_that_was_cut_off_is_noticed", summed) { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, (0 until 200).map(n => ("k", n) -> n): _*)
    rig.batch(provider, 1, (0 until 200).map(n => ("l", n) -> n): _*)
    rig.settle()
    rig.cutShort(2)
    fails("loading a file that was cut off")(rig.read(rig.provider(), 2))
  }
}
