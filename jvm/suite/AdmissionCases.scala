package penstock.admission

import java.util.Properties

import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks, ManualClock}

import penstock.observe.{BatchCost, PlanNotes}
import penstock.schedule.{TaskOrder, TaskSetKeys}

import Checks._

/** Admission without a query: reports of finished batches, and the order of their deadlines. */
object AdmissionCases extends Cases {
  private val TookMs = 100L

  private def reportsOfAll: BatchReports =
    new BatchReports(batch => Some(new BatchCost(batch, 0, 0, 0, 0, 1, TookMs)))

  check("a_new_server_is_told_of_the_last_64_batches_and_no_more", once) { _ =>
    val reports = reportsOfAll
    (1L to 100L).foreach { batch =>
      reports.ran(batch, cut = Some(batch), isMarked = true)
      reports.delivered(reports.next(), "first")
    }
    equal("what the first server has not heard", reports.next().keySet, Set.empty[Long])
    reports.delivered(Map.empty, "second")
    val again = reports.next()
    equal("what the second one is told", again.keySet, (37L to 100L).toSet)
    holds("it is told their times, as it has not seen their markers") {
      again.values.forall(_.visibleMs.contains(TookMs))
    }
    reports.ran(101, cut = Some(101), isMarked = true)
    equal("with one more", reports.next().keySet, (38L to 101L).toSet)
    reports.delivered(reports.next(), "second")
    equal("what is left", reports.next().keySet, Set.empty[Long])
  }

  check("what_sources_count_of_a_batch_is_reported_in_place_of_spark_s_own_count", once) { _ =>
    val reports = reportsOfAll
    val files = Amount(bytes = Some(70))
    val kafka = Amount(rows = Some(3))
    val read = Seq(
      1L -> (kafka + Amount.Nothing), 2L -> (files + Amount(Some(4), Some(30))),
      3L -> (files + kafka), 4L -> Amount.Unknown)
    read.foreach { case (batch, amount) => reports.ran(batch, Some(batch), isMarked = false, amount) }
    val reported = reports.next()
    equal("rows", (1L to 4L).map(reported(_).rows), Seq(3L, 2L, 3L, 4L))
    equal("bytes", (1L to 4L).map(reported(_).bytes), Seq(None, Some(100L), None, None))
  }

  check("a_note_on_the_plan_is_told_once_and_again_when_it_has_changed", once) { _ =>
    val notes = new PlanNotes
    val untold = new UntoldNotes(notes, "run")
    def toldNotes(server: String): Seq[String] = {
      val next = untold.next()
      untold.delivered(next, server)
      next.map { case (_, note) => s"${note.rule} ${note.operator} ${note.text} ${note.sinceBatch}" }
    }
    notes.say("run", 0, "panes", 0, "left")
    notes.say("run", 0, "eviction", 1, "x" * 1000)
    notes.say("other", 0, "panes", 0, "of another run")
    equal("what is new", toldNotes("first"), Seq("panes 0 left 0", s"eviction 1 ${"x" * 500}… 0"))
    notes.say("run", 1, "panes", 0, "left")
    equal("what is the same", toldNotes("first"), Nil)
    notes.say("run", 2, "panes", 0, "by panes")
    equal("what has changed", toldNotes("first"), Seq("panes 0 by panes 2"))
    equal("nothing, to a server of which nobody knows yet that it is new", toldNotes("second"), Nil)
    equal("all, to it", toldNotes("second").size, 2)
    equal("what is left", toldNotes("second"), Nil)
    (1 to 100).foreach(operator => notes.say("run", 3, "prefetch", operator.toLong, "more"))
    equal("of many", Seq.fill(4)(toldNotes("second").size), Seq(32, 32, 32, 4))
  }

  check("reports_that_nobody_hears_are_bounded_too", once) { _ =>
    val reports = reportsOfAll
    (1L to 200L).foreach { batch =>
      reports.ran(batch, cut = Some(batch), isMarked = false)
      reports.next()
    }
    equal("what is kept", reports.next().keySet, (137L to 200L).toSet)
  }

  check("deadlines_keep_their_order_when_the_wall_clock_is_set", once) { _ =>
    val clock = new ManualClock
    def cut(query: String, leftMs: Double): Properties = {
      val properties = new Properties
      properties.setProperty(TaskSetKeys.Query, query)
      properties.setProperty(TaskSetKeys.DeadlineAt, TaskSetKeys.deadlineAtMs(leftMs, clock).toString)
      properties
    }
    def inOrder(batches: Properties*): Seq[String] = {
      val sets = batches.zipWithIndex.map { case (properties, job) =>
        TaskSetKeys.read(properties, clock).facts(s"job $job", job, stage = 0, running = 0)
      }
      TaskOrder.of("edf")(sets).flatMap(_.query)
    }
    val hourMs = 3600L * 1000
    // 0 ms: `earlier` is cut, due at 1,000 ms. 100 ms: the clock is set, `later` is cut, due at 2,100.
    Seq(-hourMs, hourMs).foreach { jumpMs =>
      val earlier = cut("earlier", 1000)
      clock.turn(ms = 100)
      clock.jump(jumpMs)
      val later = cut("later", 2000)
      equal(s"the order after a jump of $jumpMs ms", inOrder(later, earlier), Seq("earlier", "later"))
    }
    // One without a deadline is due ten seconds after it came, by the same clock.
    val unknown = new Properties
    unknown.setProperty(TaskSetKeys.Query, "unknown")
    equal("beside one without a deadline", inOrder(unknown, cut("later", 2000)), Seq("later", "unknown"))
  }
}
