// Scala because: it moves each piece of state that a task has written, from the executor that
// has it.
package penstock.commit.executor

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicBoolean

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.{Backoff, TryAgain}
import penstock.commit.Workers
import penstock.commit.channel.{HowFar, IsHeld, Message, NotReleasing, Standing, Whereabouts}

/**
 * Makes the pieces of this JVM durable: appends them to the log at once where there is one, else
 * copies them to the location as soon as the offsets of their batch are durable. What went to the
 * log is copied to the location once its batch is committed.
 */
final class Copier(resources: ExecutorParts) extends Logging {
  import Copier._

  private val releases = resources.releases

  /** What waits for its run to get further; `ended` is for a run that gets no further. */
  private final class Waiting(
      val run: String,
      val isReady: Standing => Boolean,
      val start: Standing => Unit,
      val ended: () => Unit)

  private val waiting = new ConcurrentLinkedQueue[Waiting]()
  private val isPolling = new AtomicBoolean(false)

  private[commit] def take(piece: HeldPiece, standing: Standing): Unit =
    if (isReady(piece, standing)) submit(piece, standing)
    else {
      val ended = () => resources.forgetRun(piece.run)
      add(new Waiting(piece.run, isReady(piece, _), submit(piece, _), ended))
    }

  /**
   * Does the work once the offsets of the batch are durable, or will never be. No thread of a pool
   * waits for that: what it waits for may need one.
   */
  def whenReleased(run: String, batch: Long)(start: => Unit): Unit =
    whenReady(run, _.released >= batch)(start)

  /** The same once the location has the batch, or never will. */
  def whenCopied(run: String, batch: Long)(start: => Unit): Unit =
    whenReady(run, _.copied >= batch)(start)

  private def whenReady(run: String, isReady: Standing => Boolean)(start: => Unit): Unit = {
    def isOver(standing: Standing): Boolean = isReady(standing) || standing.stopped.isDefined
    add(new Waiting(run, isOver, _ => start, () => start))
  }

  /** Blocks until the run is as far as asked for; throws once it releases nothing any more. */
  def await(run: String, limitMs: Long)(isReady: Standing => Boolean): Unit =
    await(HowFar(run), limitMs)(isReady)

  /**
   * Blocks until all state that was written for the batch so far is durable. A task that has
   * written its own waits for that of every stage before it as well: those have ended.
   */
  def awaitState(run: String, batch: Long, limitMs: Long): Unit =
    await(IsHeld(run, batch), limitMs) { standing =>
      if (standing.asked == Whereabouts.Lost) {
        throw new TryAgain(
          "state_lost",
          s"state of batch $batch is lost with its executor; the query goes on from the last " +
            "durable batch when restarted")
      }
      standing.asked == Whereabouts.Unknown
    }

  private def await(question: Message, limitMs: Long)(isReady: Standing => Boolean): Unit = {
    val run = question.run
    val end = resources.clock.deadline(limitMs)
    val backoff = pauses()
    var seen = resources.changes.count
    var isOver = false
    while (!isOver) releases.ask(question) match {
      case standing: Standing if isReady(standing) => isOver = true
      case standing: Standing if standing.stopped.isDefined =>
        throw new TryAgain("commit_stopped", standing.stopped.get)
      case NotReleasing => throw new TryAgain("run_ended", s"the run $run has ended")
      case _ if end.isOver =>
        throw new TryAgain(
          "release_late",
          s"a batch of run $run waits for its offsets or state to become durable for more than " +
            s"${limitMs / 1000} s; see the driver's log for the store that does not take them")
      case _ =>
        releases.awaitNews(seen, backoff)
        seen = resources.changes.count
    }
  }

  private def isReady(piece: HeldPiece, standing: Standing): Boolean =
    standing.mayMakeDurable(piece.stateFile.batch, isLarge(piece))

  private def isLarge(piece: HeldPiece): Boolean = piece.files.values.exists(_.bytes > LogBytesMax)

  private def submit(piece: HeldPiece, standing: Standing): Unit =
    if (standing.withLog && !isLarge(piece)) resources.appender.take(piece, standing)
    else resources.pools.copiers(piece.conf).submit(new CopyingState(resources, piece, standing))

  /** The piece is in the log: the location follows once the batch is committed. */
  private[commit] def placeLater(piece: HeldPiece): Unit = {
    def isReady(standing: Standing): Boolean = standing.committed >= piece.stateFile.batch
    def start(standing: Standing): Unit =
      resources.pools.copiers(piece.conf).submit(new PlacingState(resources, piece, standing))
    add(new Waiting(piece.run, isReady, start, () => resources.forgetRun(piece.run)))
  }

  /** The runs that something waits for. */
  private[commit] def runs: Set[String] = waiting.asScala.map(_.run).toSet

  /** Nothing more of the run is released. */
  private[commit] def forgetRun(run: String): Unit =
    waiting.asScala.toSeq.filter(_.run == run).foreach(end)

  private def add(work: Waiting): Unit = {
    waiting.add(work)
    resources.changes.happened()
    poll()
  }

  private def pauses(): Backoff = new Backoff(resources.clock, PollMsFirst, PollMsMax)

  /** One thread asks for all that wait, and ends when none does. */
  private def poll(): Unit = if (isPolling.compareAndSet(false, true)) {
    val thread = Workers.daemons("penstock-release-poll").newThread { () =>
      val backoff = pauses()
      try
        while (!waiting.isEmpty) {
          val seen = resources.changes.count
          if (startReady()) backoff.reset()
          if (!waiting.isEmpty) releases.awaitNews(seen, backoff)
        }
      finally {
        isPolling.set(false)
        // However this thread ends, what waits is asked for by another.
        if (!waiting.isEmpty) poll()
      }
    }
    thread.start()
  }

  /** Asks once about every run that is waited for; returns whether that was of use to any. */
  private def startReady(): Boolean = {
    val before = waiting.asScala.toSeq
    before.groupBy(_.run).foreach { case (run, ofRun) =>
      try
        releases.ask(HowFar(run)) match {
          case standing: Standing =>
            val (ready, others) = ofRun.partition(_.isReady(standing))
            ready.foreach(work => if (waiting.remove(work)) work.start(standing))
            if (standing.stopped.isDefined) others.foreach(end)
          case NotReleasing => ofRun.foreach(end)
        }
      catch { case NonFatal(e) => logWarning(s"asking the driver about run $run failed", e) }
    }
    before.exists(!waiting.contains(_))
  }

  private def end(work: Waiting): Unit = if (waiting.remove(work)) work.ended()
}

private object Copier {

  /** How soon, and how late at most, another JVM is asked again. */
  val PollMsFirst = 5L
  val PollMsMax = 40L

  /** A file of more than this goes to the location itself; the log is for small entries. */
  val LogBytesMax: Long = 8L << 20
}
