// Scala because: it reads pages of the log beside the tasks of a JVM and hints the keys in them.
package org.apache.spark.sql.penstock.lookahead

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.ArrowBridge

import penstock.Clock
import penstock.client.Gateway
import penstock.commit.Workers
import penstock.commit.jvm.{JvmPart, JvmResources}
import penstock.prefetch.{AheadOf, AheadPages, AheadRange, LogPosition}
import penstock.settings.Connection
import penstock.source.{Page, ReadRange, SubstreamPages}

/**
 * What comes behind a batch in one stream of the log.
 *
 * @param range of the batch; what is read ahead begins where it ends
 * @param hints keys are computed from the stream's columns
 */
private[lookahead] final case class AheadSource(connection: Connection, range: ReadRange, hints: HintSource) {
  def of(substream: Int): AheadOf =
    AheadOf(range.reader.getOrElse(""), range.stream, substream, range.columns)

  /** Who is hinted: an operator, for one of its inputs. */
  def hinted: (Long, Int) = (hints.location.operator, hints.input)
}

/**
 * Reads substreams ahead of admission, on the executor whose tasks read them: from when a batch is
 * planned, every row behind it is of a later one. Pages are kept for the task that will read them,
 * and the keys of their rows are hinted, to each operator and input that reads the substream. It
 * reads as far as the next batches come, by the size of the last one, and as there is room for
 * pages. One thread for all; it ends when nothing is left to follow, and what fails is left to the
 * tasks.
 */
private[lookahead] final class ReadAhead(pages: AheadPages) extends JvmPart with Logging {
  import ReadAhead._

  private val followed = mutable.HashMap.empty[AheadOf, FollowedSubstream]
  private var reader = Option.empty[Thread]
  private var isClosed = false

  /** From a task of the batch; returns at once. */
  def follow(source: AheadSource, substream: Int): Unit = synchronized {
    if (!isClosed) {
      val of = source.of(substream)
      followed.getOrElseUpdate(of, new FollowedSubstream(of, pages)).follow(source)
      if (reader.isEmpty) {
        val started = Workers.daemons("penstock-read-ahead").newThread(() => run())
        reader = Some(started)
        started.start()
      }
    }
  }

  override def forgetRun(run: String): Unit = leaveIf(_.run == run)

  override def close(): Unit = {
    synchronized { isClosed = true }
    leaveIf(_ => true)
  }

  private def run(): Unit =
    try while (goesOn()) {
      val current = synchronized(followed.values.toSeq)
      current.groupBy(each => (each.of.query, each.of.stream)).values.foreach(readOn)
      leaveIf(_.isIdle)
      Clock.System.sleepMs(PollMs)
    } finally synchronized(if (reader.contains(Thread.currentThread)) reader = None)

  private def goesOn(): Boolean = synchronized {
    if (followed.isEmpty) reader = None
    followed.nonEmpty
  }

  private def leaveIf(isMeant: FollowedSubstream => Boolean): Unit = synchronized {
    followed.values.toSeq.filter(isMeant).foreach { each =>
      followed -= each.of
      each.leave()
    }
  }

  /** Substreams of one stream: asked once how far it is. */
  private def readOn(substreams: Seq[FollowedSubstream]): Unit =
    try {
      val source = substreams.head.newest
      val gateway = JvmResources.here.gateways.to(source.connection)
      val latest = gateway.streams.describe(source.range.stream, source.range.reader).latest
      substreams.foreach { each => if (!each.readTo(latest, gateway)) leaveIf(_ eq each) }
    } catch {
      case NonFatal(e) =>
        logDebug("rows that wait in the log were not read ahead", e)
        leaveIf(each => substreams.contains(each))
    }
}

private[lookahead] object ReadAhead {
  private val PollMs = 20L

  /** That of this JVM. */
  def here: ReadAhead = {
    val resources = JvmResources.here
    resources.parts.of(classOf[ReadAhead])(new ReadAhead(resources.aheadPages))
  }
}

/** One substream behind the batch that reads it. Tasks and the reading thread meet in it. */
private final class FollowedSubstream(val of: AheadOf, pages: AheadPages) {
  import FollowedSubstream._

  private var sources = Map.empty[(Long, Int), Hinting]
  private var batchEnd = Long.MinValue
  private var limit = Long.MinValue
  private var position = Long.MinValue
  private var idle = Clock.System.deadline(IdleMs)
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
    }
    sources = sources.updated(source.hinted, new Hinting(source, of.substream))
    last = source
    idle = Clock.System.deadline(IdleMs)
  }

  def newest: AheadSource = synchronized(last)

  def run: String = newest.hints.run

  /** Nobody follows it any more. What the reading thread still has in hand is not kept. */
  def leave(): Unit = synchronized {
    hasLeft = true
    pages.forget(of)
  }

  def isIdle: Boolean = synchronized(idle.isOver)

  /** Reads on as far as it may; false if a page found no room, so that the next batch begins anew. */
  def readTo(latest: Long, gateway: Gateway): Boolean = {
    var steps = StepsMax
    var isKept = true
    var step = nextStep(latest)
    while (isKept && steps > 0 && step.isDefined) {
      steps -= 1
      isKept = step.forall(read(_, gateway))
      step = if (isKept) nextStep(latest) else None
    }
    isKept
  }

  /** No further at once than the last batch came: all hints of a step are judged with its last row. */
  private def nextStep(latest: Long): Option[Step] = synchronized {
    val most = math.min(span, math.max(1, last.range.until - last.range.after))
    val until = math.min(math.min(latest, limit), position + most)
    Option.when(!hasLeft && until > position && pages.room >= StepBytesMax) {
      Step(last.range.copy(after = position, until = until), sources.values.toSeq)
    }
  }

  private def read(step: Step, gateway: Gateway): Boolean =
    SubstreamPages.within(gateway, step.range, of.substream, StepBytesMax) match {
      case Some(rows) =>
        val isKept = keep(AheadRange(step.range.after, step.range.until, rows))
        step.sources.foreach(_.hint(step.range, rows))
        isKept
      case None if span > 1 =>
        span /= 2
        true
      case None => false
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

  final case class Step(range: ReadRange, sources: Seq[Hinting])

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
