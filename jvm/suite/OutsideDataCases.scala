package org.apache.spark.sql.penstock.admission

import org.apache.spark.sql.connector.read.streaming.{Offset, ReadLimit, SupportsAdmissionControl}
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceReadLimit
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks, ManualClock}

import penstock.wire.{Offer, Share}

import Checks._

/** Data outside the log without a query: limits of rows in Spark's forms, and how old what waits is. */
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

  private def looking(source: Growing, clock: ManualClock): AskedData =
    new AskedData(source, (_, _) => None, Offer.ByRows, clock)

  check("a_busy_source_that_counts_no_rows_does_not_seem_to_age", once) { _ =>
    val clock = new ManualClock
    val source = new Growing
    val data = looking(source, clock)
    var start: Offset = source.initialOffset()
    equal("what waits at first", data.look(start), Offer(cutsBy = Offer.ByRows))
    Seq(ReadLimit.allAvailable(), ReadLimit.maxRows(50)).foreach { limit =>
      (1 to 5).foreach { _ =>
        clock.turn(ms = 100)
        source.end += 5
        equal("what waits", data.look(start), Offer(ageMs = Some(100.0), cutsBy = Offer.ByRows))
        start = data.take(start, Share.UpTo(1000), limit)
      }
    }
    equal("what was read", start, At(50))
  }

  check("rows_that_a_cut_has_left_keep_their_age", once) { _ =>
    val clock = new ManualClock
    val source = new Growing
    val data = looking(source, clock)
    data.look(At(0))
    clock.turn(ms = 100)
    source.end = 10
    data.look(At(0))
    equal("the cut", data.take(At(0), Share.UpTo(4), ReadLimit.allAvailable()), At(4))
    clock.turn(ms = 100)
    equal("what waits", data.look(At(4)).ageMs, Some(200.0))
    equal("the rest", data.take(At(4), Share.All, ReadLimit.allAvailable()), At(10))
  }
}
