package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.hadoop.conf.Configuration

import penstock.commit.{Changes, PieceWritten}
import penstock.commit.channel.Wrote
import penstock.commit.driver.{Named, PlacedFiles, ReleaseQueue, Store}
import penstock.commit.jvm.JvmResources
import penstock.settings.{CommitSettings, Keys}

import Checks._

/** Waits for what does not come, by a clock that is turned by hand: each has a limit and a name. */
object StallCases extends Cases {
  private val StallSeconds = 20
  private val Piece = "0/1/default/1"

  /** Takes everything at once, and keeps nothing. */
  private object emptyStore extends Store {
    override def name: String = "a test's store"
    override def putOffsets(batch: Long, bytes: Array[Byte]): Unit = ()
    override def putMarker(batch: Long, commit: Array[Byte], named: Named): Unit = ()
    override def putCommit(batch: Long, bytes: Array[Byte]): Unit = ()
    override def copy(batch: Long, placed: PlacedFiles): Unit = ()
    override def delete(path: String): Unit = ()
    override def forget(batch: Long): Unit = ()
  }

  /** A run whose first batch is computed, and lacks one piece of state. */
  private def lacking(clock: ManualClock): ReleaseQueue = {
    val conf = new Configuration
    conf.set(Keys.CommitRetrySeconds.name, "1")
    conf.set(Keys.RetrySeconds.name, "1")
    conf.set(Keys.CommitStallSeconds.name, StallSeconds.toString)
    val workers = JvmResources.here.pools.releasers("stall", conf)
    val queue = new ReleaseQueue(
      "query", "run", None, 0, false, emptyStore, workers, workers, new CommitSettings(conf),
      new Changes(clock), _ => ())
    queue.offsetsWritten(0, Array.emptyByteArray)
    queue.awaitReleased(0)
    queue.commitWritten(0, Array.emptyByteArray, Set(Piece))
    queue
  }

  private def turn(clock: ManualClock, seconds: Int): Unit = (1 to seconds).foreach { _ =>
    clock.awaitSleeper()
    clock.turn(ms = 1000)
  }

  private def turnUntilOver(clock: ManualClock, waiting: Aside[_]): Unit =
    eventually("the wait is over") {
      clock.turn(ms = 1000)
      waiting.isOver
    }

  check("a_wait_for_state_that_nobody_writes_ends_and_names_it", once) { _ =>
    val clock = new ManualClock
    val queue = lacking(clock)
    val waiting = aside(queue.awaitCommitted(0))
    turn(clock, StallSeconds - 1)
    clock.awaitSleeper()
    holds("it waits for as long as it may")(!waiting.isOver)
    turnUntilOver(clock, waiting)
    fails("the wait", "commit_stalled", s"state $Piece of batch 0", "no executor has written")(waiting.join())
    fails("the run", "commit_stalled")(queue.check())
  }

  check("a_wait_goes_on_while_its_run_makes_progress", once) { _ =>
    val clock = new ManualClock
    val queue = lacking(clock)
    val waiting = aside(queue.awaitCommitted(0))
    turn(clock, StallSeconds - 1)
    queue.receive(Wrote("run", PieceWritten(0, Piece, "executor 1", 1)))
    turn(clock, StallSeconds - 1)
    clock.awaitSleeper()
    holds("its limit begins anew")(!waiting.isOver)
    turnUntilOver(clock, waiting)
    fails("the wait", "commit_stalled", s"state $Piece of batch 0, held by executor 1")(waiting.join())
  }
}
