package org.apache.spark.sql.penstock.admission

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.connector.read.streaming.{Offset, ReadLimit, SupportsAdmissionControl}
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceReadLimit
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks, ManualClock}

import penstock.wire.{Offer, Share}

import Checks._

/** Data outside the log without a query: limits in Spark's forms, how much waits and how old it is. */
object OutsideDataCases extends Cases {
  private def python(json: String): ReadLimit = PythonStreamingSourceReadLimit(json)

  check("of_the_user_s_limit_and_admission_s_the_least_counts", once) { _ =>
    def within50(limit: ReadLimit): ReadLimit = RowLimit.smaller(limit, 50)
    equal("without one", within50(ReadLimit.allAvailable()), ReadLimit.maxRows(50))
    equal("with a smaller one", within50(ReadLimit.maxRows(20)), ReadLimit.maxRows(20))
    equal("with a larger one", within50(ReadLimit.maxRows(80)), ReadLimit.maxRows(50))
    val several = ReadLimit.compositeLimit(Array(ReadLimit.minRows(5, 1000), ReadLimit.maxRows(30)))
    equal("with several", within50(several), ReadLimit.maxRows(30))
  }

  check("a_source_in_python_is_told_in_its_own_form", once) { _ =>
    val twenty = python("""{"max_rows": 20, "_type": "ReadMaxRows"}""")
    equal("its limit", RowLimit.of(twenty), Some(20L))
    equal("less", RowLimit.of(RowLimit.smaller(twenty, 7)), Some(7L))
    equal("not more", RowLimit.of(RowLimit.smaller(twenty, 70)), Some(20L))
    holds("in its form")(RowLimit.smaller(twenty, 7).isInstanceOf[PythonStreamingSourceReadLimit])
    val all = python("""{"_type": "ReadAllAvailable"}""")
    equal("of all", RowLimit.of(all), None)
    holds("all is no limit, and twenty rows are one")(RowLimit.isAll(all) && !RowLimit.isAll(twenty))
    equal("of files", RowLimit.of(python("""{"max_files": 2, "_type": "ReadMaxFiles"}""")), None)
  }

  private final case class At(number: Long) extends Offset {
    override def json(): String = number.toString
  }

  /** A source that takes a limit of rows and does not tell how many wait. */
  private final class Growing extends SupportsAdmissionControl {
    var end = 0L

    override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
      val rows = RowLimit.of(limit).getOrElse(end)
      At(math.min(end, start.asInstanceOf[At].number + rows))
    }

    override def initialOffset(): Offset = At(0)

    override def deserializeOffset(json: String): Offset = At(json.toLong)

    override def commit(until: Offset): Unit = ()

    override def stop(): Unit = ()
  }

  private val NoLimit = ReadLimit.allAvailable()

  private def looking(source: Growing, clock: ManualClock): AskedData =
    new AskedData(source, (_, _) => None, Offer.ByRows, clock)

  check("a_busy_source_that_counts_no_rows_does_not_seem_to_age", once) { _ =>
    val clock = new ManualClock
    val source = new Growing
    val data = looking(source, clock)
    var start: Offset = source.initialOffset()
    equal("what waits at first", data.look(start, NoLimit), Offer(cutsBy = Offer.ByRows))
    Seq(NoLimit, ReadLimit.maxRows(50)).foreach { limit =>
      (1 to 5).foreach { _ =>
        clock.turn(ms = 100)
        source.end += 5
        val offer = Offer(ageMs = Some(100.0), cutsBy = Offer.ByRows)
        equal("what waits", data.look(start, limit), offer)
        start = data.take(start, Share.UpTo(1000), limit).end
      }
    }
    equal("what was read", start, At(50))
  }

  check("rows_that_a_cut_has_left_keep_their_age", once) { _ =>
    val clock = new ManualClock
    val source = new Growing
    val data = looking(source, clock)
    data.look(At(0), NoLimit)
    clock.turn(ms = 100)
    source.end = 10
    data.look(At(0), NoLimit)
    equal("the cut", data.take(At(0), Share.UpTo(4), NoLimit).end, At(4))
    clock.turn(ms = 100)
    equal("what waits", data.look(At(4), NoLimit).ageMs, Some(200.0))
    equal("the rest", data.take(At(4), Share.All, NoLimit).end, At(10))
  }

  private val HourMs = 3600L * 1000

  private def file(name: String, bytes: Long, modifiedMs: Long): WaitingFile =
    WaitingFile(SparkPath.fromUrlString(s"file:/in/$name"), bytes, modifiedMs)

  check("of_files_a_batch_may_have_what_the_user_s_limit_allows", once) { _ =>
    val clock = new ManualClock
    val waiting = new WaitingFiles(clock)
    val files = Seq(file("a", 10, 0), file("b", 20, 0), file("c", 30, 0))
    waiting.listed(files, clock.nanos)
    def names(limit: ReadLimit): Seq[String] = waiting.within(limit).map(_.path.toPath.getName)
    equal("without one", names(NoLimit), Seq("a", "b", "c"))
    equal("of files", names(ReadLimit.maxFiles(2)), Seq("a", "b"))
    equal("of bytes", names(ReadLimit.maxBytes(59)), Seq("a", "b"))
    equal("of one byte", names(ReadLimit.maxBytes(1)), Seq("a"))
    equal("what a batch took", waiting.took(2, _ == files.last), Some(30L))
    equal("what it left", waiting.bytes, 30L)
    equal("with one that was not listed", waiting.took(2, _ => false), Some(60L))
    equal("of which none was listed", waiting.took(1, _ => false), None)
  }

  check("a_file_ages_by_the_monotonic_clock_once_it_is_listed", once) { _ =>
    val clock = new ManualClock
    val waiting = new WaitingFiles(clock)
    clock.jump(HourMs)
    val old = file("old", 1, clock.wallMs - 400)
    waiting.listed(Seq(old), clock.nanos)
    equal("when it is listed first", waiting.oldestAgeMs, Some(400.0))
    Seq(HourMs -> 450.0, -2 * HourMs -> 500.0).foreach { case (jumpMs, ageMs) =>
      clock.jump(jumpMs)
      clock.turn(ms = 50)
      waiting.listed(Seq(old, file(s"after.$jumpMs", 1, clock.wallMs)), clock.nanos)
      equal(s"after a jump of $jumpMs ms", waiting.oldestAgeMs, Some(ageMs))
    }
    clock.turn(ms = 10)
    equal("between two listings", waiting.oldestAgeMs, Some(510.0))
  }

  check("a_file_has_come_since_the_last_listing_without_it", once) { _ =>
    val clock = new ManualClock
    val waiting = new WaitingFiles(clock)
    waiting.listed(Nil, clock.nanos)
    equal("of nothing", waiting.oldestAgeMs, None)
    clock.turn(ms = 80)
    clock.jump(HourMs)
    // Modified just before the clock was set: by the wall clock it is an hour old.
    waiting.listed(Seq(file("new", 1, clock.wallMs - HourMs)), clock.nanos)
    equal("its age", waiting.oldestAgeMs, Some(80.0))
    waiting.listed(Seq(file("coming", 1, clock.wallMs + HourMs)), clock.nanos)
    equal("of one from the future", waiting.oldestAgeMs, Some(0.0))
  }
}
