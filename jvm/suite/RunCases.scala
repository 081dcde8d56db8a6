package org.apache.spark.sql.execution.streaming.state.contract

import java.nio.file.Files

import penstock.commit.channel.GaveUp
import penstock.commit.jvm.JvmResources

import Checks._
import Rows._

/** What is open for a run is closed with it, and what is open in a JVM with its application. */
object RunCases extends Cases {
  private val Runs = 12
  private val ManyRuns = 500

  private def holdings: Map[String, Long] = JvmResources.here.holdings

  private def isNothingHeld: Boolean = holdings.values.forall(_ == 0)

  check("many_runs_leave_nothing_behind", held) { rig =>
    (0 until Runs).foreach { n =>
      rig.batch(rig.provider(minDeltas = 2), n, ("n", n) -> n)
      holds(s"run $n is open: $holdings")(holdings("release queues") == 1)
      rig.settle()
      rig.restart()
    }
    rig.stop()
    holds(s"nothing is open: $holdings")(isNothingHeld)
  }

  /** Each run ends in another way: at rest, in the middle of a task, with a batch on its way. */
  check("five_hundred_runs_leave_no_object_and_no_thread_behind", allOf(once, held)) { rig =>
    def run(n: Int): Unit = {
      val provider = rig.provider(minDeltas = 2)
      rig.batch(provider, 0, ("n", n) -> n)
      if (n % 3 == 0) rig.settle()
      if (n % 3 == 1) rig.getStore(provider, 1).abort()
      if (n % 3 == 2) rig.batch(provider, 1, ("left alone", n) -> n)
      JvmResources.here.queryTerminated(rig.queue.run)
      rig.startOver()
    }
    (0 until Runs).foreach(run)
    val (objects, threads) = (Heap.plugin, Threads.ofPlugin)
    (0 until ManyRuns).foreach(run)
    rig.stop()
    eventually(s"nothing is open: $holdings")(isNothingHeld)
    eventually("no more objects are alive", limitMs = 20000)(Heap.growth(objects, Runs).isEmpty)
    holds(s"no more threads: ${Threads.ofPlugin -- threads}") {
      Threads.ofPlugin.size <= threads.size + Runs
    }
  }

  check("a_run_whose_query_has_terminated_ends_when_all_of_it_is_released", held) { rig =>
    val run = rig.queue.run
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.location.hold(1)
    rig.batch(provider, 1, ("b", 2) -> 2)
    JvmResources.here.queryTerminated(run)
    holds("it has something to release")(JvmResources.here.releases.ofRun(run).isDefined)
    rig.location.letGo()
    eventually("it has ended")(JvmResources.here.releases.ofRun(run).isEmpty)
    holds("its last batch is committed")(rig.location.has("commits/1"))
    eventually("nothing is open")(isNothingHeld)
  }

  check("a_run_that_has_failed_ends_with_its_query", held) { rig =>
    val run = rig.queue.run
    rig.batch(rig.provider(), 0, ("a", 1) -> 1)
    rig.settle()
    rig.queue.receive(GaveUp(run, "a test has given it up"))
    holds("it is there until its query has terminated") {
      JvmResources.here.releases.ofRun(run).isDefined
    }
    JvmResources.here.queryTerminated(run)
    eventually("it has ended")(JvmResources.here.releases.ofRun(run).isEmpty)
  }

  check("a_task_that_outlives_its_run_writes_nothing_and_leaves_nothing", allOf(held, changelog)) { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    val store = rig.getStore(provider, 1)
    put(store, ("zombie", 0) -> 99)
    JvmResources.here.endRun(rig.queue.run)
    store.commit()
    holds(s"nothing of it is in the location: ${rig.files()}")(!rig.hasVersion(2))
    JvmResources.here.sweep()
    eventually("nothing is open")(isNothingHeld)
  }

  check("what_is_open_is_closed_with_the_application", allOf(held, changelog)) { rig =>
    val before = JvmResources.here
    rig.batch(rig.provider(), 0, ("a", 1) -> 1)
    val locks = rig.localLocks
    holds("it has a folder")(locks.nonEmpty)
    rig.settle()
    var closed = 0
    before.atEndOf("a run")(closed += 1)
    JvmResources.close()
    equal("how often the run was closed", closed, 1)
    holds("its folders are gone")(locks.forall(lock => !Files.exists(lock.getParent)))
    holds("nothing is open")(before.holdings.values.forall(_ == 0))
    rig.restart()
    holds("another is opened")(JvmResources.here ne before)
    rig.batch(rig.provider(), 1, ("b", 2) -> 2)
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }
}
