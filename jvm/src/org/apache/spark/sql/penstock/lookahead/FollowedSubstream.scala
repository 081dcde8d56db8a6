// Scala because: it hands Arrow pages to Spark's tasks, and their rows to the code that hints keys.
package org.apache.spark.sql.penstock.lookahead

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.penstock.ArrowBridge

import penstock.Clock
import penstock.client.Gateways
import penstock.prefetch.{AheadOf, AheadPace, AheadPages, AheadRange, LogPosition}
import penstock.settings.Connection
import penstock.source.{Page, PagesRead, ReadRange, SubstreamPages}

/** What is asked of the log when it is read ahead. */
private[lookahead] trait AheadLog {

  /** As `SubstreamPages.read`. */
  def read(
      connection: Connection,
      range: ReadRange,
      substream: Int,
      isOpen: Boolean,
      bytesMax: Long): PagesRead
}

/** The log as the server has it. */
private[lookahead] final class ServedLog(gateways: Gateways) extends AheadLog {
  override def read(
      connection: Connection,
      range: ReadRange,
      substream: Int,
      isOpen: Boolean,
      bytesMax: Long): PagesRead =
    SubstreamPages.read(gateways.to(connection), range, substream, isOpen, bytesMax)
}

/** One substream behind the batch that reads it. Tasks and the reading thread meet in it. */
private[lookahead] final class FollowedSubstream(val of: AheadOf, pages: AheadPages, clock: Clock) {
  import FollowedSubstream._

  private val pace = new AheadPace
  private var sources = Map.empty[(Long, Int), Hinting]
  private var batchEnd = Long.MinValue
  private var limit = Long.MinValue
  private var position = Long.MinValue

  /** As far as the stream is known to go. */
  private var latest = Long.MinValue
  private var idle = clock.deadline(IdleMs)
  private var last: AheadSource = _
  private var hasLeft = false

  /** Read by the reading thread alone. */
  private var span = PositionsAtOnce

  /** A task of a batch begins to read the substream, for one operator and input. */
  def follow(source: AheadSource): Unit = synchronized {
    val range = source.range
    if (range.until > batchEnd) {
      // Who did not come with the batch before this one is not hinted any more.
      sources = sources.filter(_._2.source.range.until == batchEnd)
      pages.dropUntil(of, range.after)
      position = pages.end(of).filter(_ > range.until).getOrElse(range.until)
      limit = range.until + math.max(PositionsMin, BatchesAhead * (range.until - range.after))
      batchEnd = range.until
      pace.batchBegan(clock.nanos, isMoreKnown = latest > position)
    }
    sources = sources.updated(source.hinted, new Hinting(source, of.substream))
    last = source
    idle = clock.deadline(IdleMs)
  }

  def run: String = synchronized(last).hints.run

  /** Nobody follows it any more. What the reading thread still has in hand is not kept. */
  def leave(): Unit = synchronized {
    hasLeft = true
    pages.forget(of)
  }

  def isIdle: Boolean = synchronized(idle.isOver)

  /** How long there is nothing to do. Who has read as far as it may waits for the next batch. */
  def waitNs: Long = synchronized {
    val idleNs = idle.atNs - clock.nanos
    if (position >= limit) idleNs else math.min(idleNs, pace.waitNs(clock.nanos))
  }

  /** Reads on as far as it may; false if a page found no room, so that the next batch begins anew. */
  def turn(log: AheadLog): Boolean = {
    var steps = StepsMax
    var isKept = true
    var step = nextStep()
    while (isKept && steps > 0 && step.isDefined) {
      steps -= 1
      isKept = step.forall(read(_, log))
      step = if (isKept && isMoreKnown) nextStep() else None
    }
    synchronized(pace.asked(clock.nanos, isMoreKnown = step.isDefined))
    isKept
  }

  private def isMoreKnown: Boolean = synchronized(latest > position)

  /** No further at once than the last batch came: all hints of a step are judged with its last row. */
  private def nextStep(): Option[Step] = synchronized {
    val most = math.min(span, math.max(1, last.range.until - last.range.after))
    val until = math.min(limit, position + most)
    Option.when(!hasLeft && until > position && pages.room >= StepBytesMax) {
      val range = last.range.copy(after = position, until = until)
      Step(last.connection, range, isOpen = latest < until, sources.values.toSeq)
    }
  }

  private def read(step: Step, log: AheadLog): Boolean = {
    val range = step.range
    val answer = log.read(step.connection, range, of.substream, step.isOpen, StepBytesMax)
    synchronized { latest = math.max(latest, answer.until) }
    answer.pages match {
      case Some(rows) if answer.until > range.after =>
        val isKept = keep(AheadRange(range.after, answer.until, rows))
        step.sources.foreach(_.hint(range.copy(until = answer.until), rows))
        isKept
      case Some(_) => true
      // The stream goes further than may be read at once: the next step ends where it may.
      case None if answer.until > range.until => true
      case None if span > 1 =>
        span /= 2
        true
      case None => false
    }
  }

  /** Before the rows are hinted: a task that begins now may take them. */
  private[lookahead] def keep(range: AheadRange): Boolean = synchronized {
    // A later batch may have been planned meanwhile, which reads them itself, or the run has ended.
    val isStill = !hasLeft && position == range.after
    val isKept = isStill && pages.offer(of, range)
    if (isKept) position = range.until
    isKept || !isStill
  }
}

private object FollowedSubstream {

  /** Positions of the log that are read at once: a batch that ends within them reads them again. */
  private val PositionsAtOnce = 256L

  /** Reads of one turn, so that other substreams get theirs. */
  private val StepsMax = 16

  /** Bytes of one read; where the log has more in so few positions, fewer are read at once. */
  private val StepBytesMax = 4L << 20

  /** Behind a batch, so many of its own length are read ahead; and after a short one so far. */
  private val BatchesAhead = 2L
  private val PositionsMin = 64L

  /** No batch came here for so long: another executor reads the substream now, or the query ended. */
  private val IdleMs = 5000L

  /** @param isOpen it is not known whether the stream goes as far: what there is is read */
  final case class Step(connection: Connection, range: ReadRange, isOpen: Boolean, sources: Seq[Hinting])

  /** The hints of one operator and input, on the reading thread. */
  final class Hinting(val source: AheadSource, substream: Int) {
    private lazy val hints = source.hints.open(substream)

    def hint(range: ReadRange, pages: Seq[Array[Byte]]): Unit = {
      hints.comeBefore(LogPosition(range.stream, range.until))
      pages.foreach(hint)
      hints.flush()
    }

    private def hint(bytes: Array[Byte]): Unit = {
      val allocator = ArrowBridge.allocator(s"penstock-ahead-$substream")
      try {
        val page = new Page(bytes, allocator)
        try while (page.next()) page.batch.rowIterator().asScala.foreach(hints.row)
        finally page.close()
      } finally allocator.close()
    }
  }
}
