package org.apache.spark.sql.execution.streaming.state.contract

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration

import penstock.{BadCall, Clock, TryAgain}
import penstock.commit.Retrying
import penstock.settings.{CommitSettings, Keys}

import Checks._

/** Work that is tried again and waits that end, by a clock that is turned by hand. */
object RetryCases extends Cases {
  private val RetrySeconds = 1

  /** What fails as often as it is told to, and notes when it was tried. */
  private final class Trying(clock: Clock, failures: Int, error: => Throwable)
      extends Retrying(RetryCases.settings, clock) {
    val triedMs = mutable.Buffer.empty[Long]
    @volatile var givenUp: Option[Throwable] = None
    @volatile var isOfNoUse = false

    override def name: String = "a test's work"

    override protected def isPointless: Boolean = isOfNoUse

    override protected def once(): Unit = {
      triedMs += clock.nanos / Clock.NsInMs
      if (triedMs.size <= failures) throw error
    }

    override protected def giveUp(e: Throwable): Unit = givenUp = Some(e)
  }

  private def settings: CommitSettings = {
    val conf = new Configuration
    conf.set(Keys.CommitRetrySeconds.name, RetrySeconds.toString)
    new CommitSettings(conf)
  }

  private def passing: Throwable = new TryAgain("test", "not yet")

  /** Turns the clock a little whenever the work waits for it. */
  private def perform(work: Trying, clock: ManualClock)(meanwhile: => Unit = ()): Unit = {
    val performing = aside(work.perform())
    while (!performing.isOver) {
      meanwhile
      clock.turn(ms = 10)
      Thread.sleep(1)
    }
    performing.join()
  }

  check("work_that_fails_is_tried_again_after_pauses_that_grow", once) { _ =>
    val clock = new ManualClock
    val work = new Trying(clock, failures = 4, passing)
    val performing = aside(work.perform())
    Seq(50L, 100L, 200L, 400L).foreach { pauseMs =>
      clock.awaitSleeper()
      val before = work.triedMs.size
      clock.turn(pauseMs - 1)
      clock.awaitSleeper()
      equal("tries a moment too early", work.triedMs.size, before)
      clock.turn(ms = 1)
      eventually("it is tried again")(work.triedMs.size > before)
    }
    performing.join()
    equal("the tries", work.triedMs.toSeq, Seq(0L, 50L, 150L, 350L, 750L))
    equal("what was given up", work.givenUp, None)
  }

  check("work_that_goes_on_failing_is_given_up_when_its_time_is_over", once) { _ =>
    val clock = new ManualClock
    val work = new Trying(clock, failures = Int.MaxValue, passing)
    perform(work, clock)()
    holds("it was given up")(work.givenUp.isDefined)
    holds("not before its time")(work.triedMs.last >= RetrySeconds * 1000)
    holds("all but the last try were within it")(work.triedMs.init.forall(_ < RetrySeconds * 1000))
  }

  check("work_that_can_never_succeed_is_given_up_at_once", once) { _ =>
    val clock = new ManualClock
    val work = new Trying(clock, failures = Int.MaxValue, new BadCall("test", "never"))
    work.perform()
    equal("the tries", work.triedMs.toSeq, Seq(0L))
    holds("it was given up")(work.givenUp.exists(_.getMessage.contains("never")))
  }

  check("work_that_is_of_no_use_any_more_is_neither_tried_nor_given_up", once) { _ =>
    val clock = new ManualClock
    val work = new Trying(clock, failures = Int.MaxValue, passing)
    perform(work, clock) { if (clock.wallMs >= 100) work.isOfNoUse = true }
    equal("what was given up", work.givenUp, None)
    holds("it was tried before")(work.triedMs.nonEmpty)
  }

  check("a_wait_ends_when_it_is_told_to_look_or_when_its_time_is_over", once) { _ =>
    val clock = new ManualClock
    val monitor = new Object
    @volatile var isReady = false
    val late = aside(clock.await(monitor, limitMs = 100)(isReady))
    clock.awaitSleeper()
    clock.turn(ms = 100)
    equal("what came too late", late.join(), false)
    val soon = aside(clock.await(monitor, limitMs = 100)(isReady))
    clock.awaitSleeper()
    isReady = true
    monitor.synchronized(monitor.notifyAll())
    equal("what came in time", soon.join(), true)
  }
}
