package org.apache.spark.sql.penstock.lookahead

import java.util.UUID

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Add, Alias, Attribute, AttributeReference, BoundReference, Cast, EqualTo, EvalMode, Expression, Literal, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.optimizer.BuildRight
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.execution.{LocalTableScanExec, ProjectExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{SessionWindowStateStoreRestoreExec, StatefulOperatorStateInfo, StateStoreReader}
import org.apache.spark.sql.execution.streaming.state.{NoPrefixKeyStateEncoderSpec, StateSchemaValidationResult, UnsafeRowDataEncoder}
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks, ManualClock}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import penstock.prefetch.{AheadOf, AheadPages, AheadRange, Candidate, HintExpiry}
import penstock.settings.Connection
import penstock.source.{PagesRead, ReadRange}

import Checks._

/** A stateful operator of which lookahead has never heard. */
final case class NewOperatorExec(child: SparkPlan) extends UnaryExecNode with StateStoreReader {
  override def output: Seq[Attribute] = child.output

  override def stateInfo: Option[StatefulOperatorStateInfo] = None

  override def validateAndMaybeEvolveStateSchema(
      hadoopConf: Configuration,
      batchId: Long,
      stateSchemaVersion: Int): List[StateSchemaValidationResult] = Nil

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("it is only planned")

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

/** Lookahead without a plan: bytes of keys, pages that were read ahead, and slack. */
object LookaheadCases extends Cases {
  private val keyTypes = Seq(StringType, LongType, StringType, DoubleType)
  private val attributes = keyTypes.zipWithIndex.map { case (kind, index) => AttributeReference(s"field$index", kind)() }
  private val keySchema = StructType(attributes.map(each => StructField(each.name, each.dataType)))
  private val numberSchema = new StructType().add("value", LongType)

  private def encoder(schema: StructType) =
    new UnsafeRowDataEncoder(NoPrefixKeyStateEncoderSpec(schema), numberSchema)

  private def key(text: String, number: Long): UnsafeRow = UnsafeProjection.create(keySchema)(
    InternalRow(UTF8String.fromString(text), number, null, 1.5)).copy()

  check("a_key_has_the_bytes_that_the_store_is_read_by", once) { _ =>
    Seq("", "eight by", "somewhat longer than a word").foreach { text =>
      val row = key(text, 7)
      val stored = encoder(keySchema).encodeKey(row).toSeq
      equal(s"the key of '$text'", TaskHints.encoded(row).toSeq, stored)
    }
  }

  check("rows_of_a_join_are_hinted_by_the_bytes_that_spark_reads_them_by", once) { _ =>
    val row = key("somewhat longer than a word", -1)
    val ofSpark = UnsafeProjection.create(attributes :+ Literal(1L), attributes)
    val expected = (0 until 3).map { index =>
      val withIndex = ofSpark(row)
      withIndex.setLong(keyTypes.size, index.toLong)
      encoder(keySchema.add("index", LongType)).encodeKey(withIndex).toSeq
    }
    val values = JoinValues("run", "store", "family", Candidate.C, keyTypes)
    val due = HintExpiry.of(Candidate.C, batch = 4)
    val number = UnsafeProjection.create(numberSchema)(InternalRow(3L))
    val hinted = values.after(TaskHints.encoded(row), TaskHints.encoded(number), 17L, due)
    equal("the keys", hinted.map(_.keys.toSeq.map(_.toSeq)), Some(expected))
    equal("their times", hinted.map(_.atMs.toSeq), Some(Seq(17L, 17L, 17L)))
    equal("for the same rows", hinted.map(_.due), Some(due))
    equal("of a key without rows", values.after(TaskHints.encoded(row), null, 17L, due), None)
  }

  /** One key of a row with one number; its hints go to no store. */
  private def source(conditions: Expression*): HintSource = HintSource(
    Candidate.C, StateLocation("/nowhere", UUID.randomUUID(), 0), batch = 0, input = 0,
    Seq(BoundKey(Seq(BoundReference(0, LongType, nullable = false)), conditions, None, Some(Literal(0)))),
    Seq(LongType), stores = Nil, hintsHere = false, new PassTimes, hotThreshold = 255, reads = Map.empty)

  private def hints(conditions: Expression*): TaskHints = source(conditions: _*).open(0)

  private val Fails = EqualTo(Cast(Literal("no number"), IntegerType, None, EvalMode.ANSI), Literal(1))

  check("a_condition_is_looked_at_only_where_those_before_it_hold", once) { _ =>
    Seq(Literal(null, BooleanType), Literal(false)).foreach { condition =>
      val task = hints(condition, Fails)
      task.row(InternalRow(7L))
      holds(s"nothing fails behind $condition")(task.isOn)
    }
  }

  check("hints_that_fail_end_for_their_task_and_nothing_else_does", once) { _ =>
    val task = hints(Fails)
    task.row(InternalRow(7L))
    holds("it hints no more")(!task.isOn)
    task.row(InternalRow(8L))
    task.flush()
    task.end()
    val isThrown =
      try {
        task.failed(new InterruptedException("planned"))
        false
      } catch { case _: InterruptedException => true }
    holds("what must end the task is thrown on")(isThrown)
  }

  private val substream = AheadOf("query", "bids", 0, 3)

  private def range(after: Long, until: Long): AheadRange =
    AheadRange(after, until, Seq(Array.fill(10)(until.toByte)))

  private def filled(ranges: AheadRange*): AheadPages = {
    val pages = new AheadPages(bytesMax = 100)
    ranges.foreach(each => holds(s"there is room for $each")(pages.offer(substream, each)))
    pages
  }

  check("a_batch_takes_what_was_read_ahead_from_where_it_begins_to_where_it_ends", once) { _ =>
    val pages = filled(range(10, 20), range(20, 25), range(25, 40))
    equal("what is taken", pages.take(substream, 10, 25).map(_.until), Seq(20L, 25L))
    equal("the bytes that are left", pages.bytes, 10L)
    equal("what the next batch takes", pages.take(substream, 25, 50).map(_.until), Seq(40L))
    equal("the bytes that are left then", pages.bytes, 0L)
  }

  check("pages_with_rows_of_two_batches_are_read_again", once) { _ =>
    val pages = filled(range(10, 20), range(20, 40))
    equal("what is taken", pages.take(substream, 10, 30).map(_.until), Seq(20L))
    equal("what the next batch takes", pages.take(substream, 30, 50), Nil)
    equal("what a batch takes that begins in between", filled(range(10, 20)).take(substream, 15, 30), Nil)
  }

  check("pages_that_a_batch_has_read_in_another_way_make_room", once) { _ =>
    val pages = filled(range(10, 20), range(20, 25), range(25, 40))
    pages.dropUntil(substream, 20)
    equal("the room", pages.room, 80L)
    equal("what the next batch takes", pages.take(substream, 20, 40).map(_.until), Seq(25L, 40L))
  }

  check("what_was_read_ahead_is_bounded_and_has_no_gaps", once) { _ =>
    val pages = filled((0L until 10L).map(at => range(at, at + 1)): _*)
    holds("no more than the bound is kept")(!pages.offer(substream, range(10, 11)))
    holds("nothing is kept behind a gap")(!filled(range(0, 5)).offer(substream, range(6, 7)))
  }

  /** A log that ends at a position, and has no bytes in its pages. */
  private final class KnownLog(private var end: Long) extends AheadLog {
    private val asked = mutable.Buffer.empty[(Long, Long)]

    def endsAt(position: Long): Unit = synchronized { end = position }

    /** What was answered, from where to where. */
    def answers: Seq[(Long, Long)] = synchronized(asked.toSeq)

    override def read(
        connection: Connection,
        range: ReadRange,
        substream: Int,
        isOpen: Boolean,
        bytesMax: Long): PagesRead = synchronized {
      val until = if (isOpen) end else range.until
      asked += range.after -> until
      PagesRead(until, Option.when(until <= range.until)(Nil))
    }
  }

  private def batch(after: Long, until: Long): AheadSource = AheadSource(
    Connection("http://localhost:1", "token", None, retrySeconds = 1),
    ReadRange("bids", after, until, columns = 3), source())

  check("the_log_is_asked_twice_a_batch_for_what_waits_behind_it_however_long_that_takes", once) { _ =>
    Seq(60L, 100L, 500L).foreach { batchMs =>
      val (clock, log) = (new ManualClock, new KnownLog(0))
      val pages = new AheadPages(bytesMax = 8L << 20)
      val followed = new FollowedSubstream(substream, pages, clock)
      val numbers = (1L to 4L).map { number =>
        val before = log.answers.size
        followed.follow(batch((number - 1) * 100, number * 100))
        pages.take(substream, (number - 1) * 100, number * 100)
        (1L to batchMs).foreach { ms =>
          clock.turn(1)
          log.endsAt(number * 100 + ms * 100 / batchMs)
          if (followed.waitNs <= 0) followed.turn(log)
        }
        log.answers.size - before
      }
      equal(s"questions for batches of $batchMs ms", numbers.tail, Seq(2, 2, 2))
      equal("what was read of the next batch", pages.end(substream), Some(480L))
    }
  }

  check("a_backlog_is_read_as_each_batch_begins_and_not_asked_for_in_between", once) { _ =>
    val (clock, log, pages) = (new ManualClock, new KnownLog(1000), new AheadPages(bytesMax = 8L << 20))
    val ahead = new ReadAhead(pages, log, clock)
    // The clock stands still: whatever is read is read because a batch has begun.
    ahead.follow(batch(0, 100), substream = 0)
    val first = Seq((100L, 1000L), (100L, 200L), (200L, 300L))
    eventually("so far as the next two batches come is read")(log.answers == first)
    clock.awaitSleeper()
    ahead.follow(batch(100, 200), substream = 0)
    eventually("so far as one batch more comes is read")(log.answers == first :+ (300L -> 400L))
    clock.awaitSleeper()
    clock.turn(3000)
    clock.awaitSleeper()
    equal("what was asked for without another batch", log.answers.size, 4)
    val followed = batch(0, 0).of(0)
    equal("what is kept", pages.end(followed), Some(400L))
    clock.turn(3000)
    eventually("nothing is kept where no batch comes any more")(pages.end(followed).isEmpty)
    ahead.close()
  }

  check("pages_that_come_after_their_run_has_ended_are_not_kept", once) { _ =>
    val pages = new AheadPages(bytesMax = 100)
    val followed = new FollowedSubstream(substream, pages, new ManualClock)
    followed.follow(batch(0, 10))
    holds("a page is kept before")(followed.keep(AheadRange(10, 20, Seq(Array.fill(10)(1.toByte)))))
    equal("the bytes of it", pages.bytes, 10L)
    followed.leave()
    holds("the reading thread goes on")(followed.keep(AheadRange(20, 30, Seq(Array.fill(10)(2.toByte)))))
    equal("the bytes that are held", pages.bytes, 0L)
  }

  check("slack_is_counted_to_the_first_read_and_is_more_the_earlier_the_place", once) { _ =>
    val below = PassTime.ofTask(beganMs = 1100, firstMs = 1200, endedMs = 1300)
    val above = PassTime.ofTask(beganMs = 1400, firstMs = 1500, endedMs = 1600)
    val aggregated = Slack.of(1000, isBarrier = true, isPartlyAggregated = true, above, Some(below))
    equal("behind a partial aggregate", aggregated,
      Map[Candidate, Long](Candidate.A -> 600, Candidate.B -> 401, Candidate.C -> 301, Candidate.D -> 1))
    val streamed = Slack.of(1000, isBarrier = false, isPartlyAggregated = false, above, Some(below))
    equal("of rows that are read as they come", streamed,
      Map[Candidate, Long](Candidate.A -> 500, Candidate.B -> 201, Candidate.C -> 201, Candidate.D -> 0))
    equal("without a shuffle", Slack.of(1000, true, false, above, None).keySet,
      Set[Candidate](Candidate.A, Candidate.D))
  }

  private def table(columns: String*): LocalTableScanExec =
    LocalTableScanExec(columns.map(AttributeReference(_, LongType)()), Nil, None)

  check("an_operator_that_is_not_known_is_left_alone_by_its_name", once) { _ =>
    val input = table("id")
    equal("of a new one", StateRead.of(NewOperatorExec(input)), Left("NewOperator is not known to be read key by key"))
    val sessions = SessionWindowStateStoreRestoreExec(input.output, input.output.head, None, None, None, 1, input)
    equal("of sessions", StateRead.of(sessions), Left("session windows are read by scans"))
  }

  check("a_key_that_takes_too_much_to_compute_is_not_carried_further", once) { _ =>
    val input = table("id")
    val id: Expression = input.output.head
    def below(terms: Int): Either[String, Int] = {
      val sum = Alias((1 until terms).foldLeft(id)((sum, _) => Add(sum, id)), "sum")()
      val project = ProjectExec(Seq(sum), input)
      CarriedKey.below(project, Seq(CarriedKey.over(project, Seq(sum.toAttribute), Nil)))
        .map(keys => CarriedKey.sizeOf(keys.flatMap(_.all)))
    }
    // So many terms, and a sum for each two of them.
    equal("the size of a key", below(terms = 200), Right(399))
    equal("one more", below(terms = 201), Left("below Project the key takes more than 400 expressions to compute"))
  }

  check("a_key_from_the_table_that_a_stream_is_joined_with_is_not_known_below_the_join", once) { _ =>
    val (rows, other) = (table("id"), table("name"))
    val join = BroadcastHashJoinExec(rows.output, other.output, Inner, BuildRight, None, rows, other)
    def below(key: Expression) =
      CarriedKey.below(join, Seq(CarriedKey.over(join, Seq(key), Nil))).map(_.map(_.key))
    equal("of the rows that are joined", below(rows.output.head), Right(Seq(Seq[Expression](rows.output.head))))
    equal("of the table", below(other.output.head), Left("name comes from the table of BroadcastHashJoin"))
  }
}
