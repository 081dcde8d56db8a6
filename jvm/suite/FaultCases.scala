package org.apache.spark.sql.execution.streaming.state.contract

import scala.util.control.NonFatal

import Checks._
import Rows._

/** A checkpoint store that fails, and what is left when it works again. */
object FaultCases extends Cases {
  private val one: Pairs = Map(("a", 1) -> 1)

  /** An attempt at batch 1, given up as Spark gives up a task that failed. */
  private def attempt(world: World, number: Int)(isOver: => Unit): Unit = {
    val provider = world.provider(scheme = "faulty")
    val store = world.getStore(provider, 1)
    try {
      put(store, ("a", 1) -> number, ("attempt", number) -> number)
      world.commit(store)
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
    check(s"a_commit_fails_when_${doing}_a_file_does", direct) { world =>
      world.batch(world.provider(scheme = "faulty"), 0, ("a", 1) -> 1)
      world.faults("faulty", fault)
      fails(s"a commit with '$fault'", "scripted fault")(attempt(world, 7)(()))
      world.faults("faulty")
      equal("version 1", world.readAnew(1), one)
      attempt(world, 8)(())
      equal("version 2", world.readAnew(2), Map(("a", 1) -> 8, ("attempt", 8) -> 8): Pairs)
    }

    check(s"a_run_stops_when_${doing}_a_file_goes_on_failing", held) { world =>
      world.batch(world.provider(scheme = "faulty"), 0, ("a", 1) -> 1)
      world.settle()
      world.restartImpatient()
      world.faults("faulty", fault)
      fails(s"a run with '$fault'", "scripted fault") {
        attempt(world, 7)(eventually("the run has stopped") {
          world.queue.check()
          false
        })
      }
      holds("its batch is not committed")(!world.location.has("commits/1"))
      world.restart()
      equal("version 1", world.readAnew(1), one)
      attempt(world, 8)(())
      equal("version 2", world.readAnew(2), Map(("a", 1) -> 8, ("attempt", 8) -> 8): Pairs)
    }
  }

  check("a_write_that_fails_for_a_moment_is_made_again", held) { world =>
    val provider = world.provider(scheme = "faulty", minDeltas = 100)
    world.batch(provider, 0, ("a", 1) -> 1)
    world.settle()
    world.faults("faulty", "fail rename")
    world.batch(provider, 1, ("b", 2) -> 2)
    Thread.sleep(200)
    holds("it is not there yet")(!world.hasVersion(2))
    world.faults("faulty")
    equal("version 2", world.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_load_fails_when_it_cannot_see_what_is_there") { world =>
    world.batch(world.provider(), 0, ("a", 1) -> 1)
    world.batch(world.provider(), 1, ("b", 2) -> 2)
    world.settle()
    val expected: Pairs = Map(("a", 1) -> 1, ("b", 2) -> 2)
    Seq("fail status", "fail open", "fail list").foreach { fault =>
      val provider = world.provider(scheme = "faulty")
      world.faults("faulty", fault)
      try equal(s"version 2 with '$fault'", world.read(provider, 2), expected)
      catch { case e: Throwable if !e.isInstanceOf[Broken] => }
      world.faults("faulty")
      equal(s"version 2 after '$fault'", world.read(provider, 2), expected)
    }
  }

  private def summed(variant: Variant): Option[String] =
    Option.when(variant.format == 1)("format 1 keeps no checksum of its files")

  check("checksums_may_be_turned_off_and_on_between_batches", summed) { world =>
    val settings = Seq((true, 4), (false, 4), (true, 0))
    settings.zipWithIndex.foreach { case ((isOn, threads), n) =>
      world.setChecksums(isOn, threads)
      val store = world.getStore(world.provider(), n.toLong, force = true)
      put(store, ("k", n) -> n)
      world.commit(store)
      world.settle()
      equal(s"a checksum of version ${n + 1}", world.hasChecksum(n + 1L), isOn)
    }
    equal("version 3", world.readAnew(3), settings.indices.map(n => ("k", n) -> n).toMap)
  }

  check("a_file_of_a_state_that_was_cut_off_is_noticed", summed) { world =>
    val provider = world.provider(minDeltas = 100)
    world.batch(provider, 0, (0 until 200).map(n => ("k", n) -> n): _*)
    world.batch(provider, 1, (0 until 200).map(n => ("l", n) -> n): _*)
    world.settle()
    world.cutShort(2)
    fails("loading a file that was cut off")(world.read(world.provider(), 2))
  }
}
