// Scala because: it moves each piece of state that a task has written, from the executor that
// has it.
package penstock.commit.executor

import java.util.concurrent.{ConcurrentLinkedQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.TryAgain
import penstock.commit.Workers
import penstock.commit.channel.{HowFar, IsHeld, Message, NotReleasing, Standing, Whereabouts}
import penstock.commit.driver.ReleaseQueues

/**
 * Makes the pieces of this JVM durable: appends them to the log at once where there is one, else
 * copies them to the location as soon as the offsets of their batch are durable. What went to the
 * log is copied to the location once its batch is committed.
 */
object Copier extends Logging {
  private val PollMs = 5L
  /** A file of more than this goes to the location itself; the log is for small entries. */
  private val LogBytesMax = 8L << 20

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
      val ended = () => HeldState.forgetRun(piece.run)
      waiting.add(new Waiting(piece.run, isReady(piece, _), submit(piece, _), ended))
      poll()
    }

  /**
   * Does the work once the offsets of the batch are durable, or will never be. No thread of a pool
   * waits for that: what it waits for may need one.
   */
  def whenReleased(run: String, batch: Long)(start: => Unit): Unit = {
    def isReady(standing: Standing): Boolean =
      standing.released >= batch || standing.stopped.isDefined
    waiting.add(new Waiting(run, isReady, _ => start, () => start))
    poll()
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
    val end = System.nanoTime() + limitMs * 1000000
    var isOver = false
    while (!isOver) ReleaseQueues.ask(question) match {
      case standing: Standing if isReady(standing) => isOver = true
      case standing: Standing if standing.stopped.isDefined =>
        throw new TryAgain("commit_stopped", standing.stopped.get)
      case NotReleasing => throw new TryAgain("run_ended", s"the run $run has ended")
      case _ if System.nanoTime() > end =>
        throw new TryAgain(
          "release_late",
          s"a batch of run $run waits for its offsets or state to become durable for more than " +
            s"${limitMs / 1000} s; see the driver's log for the store that does not take them")
      case _ => Thread.sleep(PollMs)
    }
  }

  private def isReady(piece: HeldPiece, standing: Standing): Boolean =
    standing.mayMakeDurable(piece.what.batch, isLarge(piece))

  private def isLarge(piece: HeldPiece): Boolean = piece.members.values.exists(_.bytes > LogBytesMax)

  private def submit(piece: HeldPiece, standing: Standing): Unit =
    if (standing.withLog && !isLarge(piece)) Appender.take(piece, standing)
    else ReleaseQueues.copiers(piece.conf).submit(new CopyingState(piece, standing))

  /** The piece is in the log: the location follows once the batch is committed. */
  private[commit] def placeLater(piece: HeldPiece): Unit = {
    def isReady(standing: Standing): Boolean = standing.committed >= piece.what.batch
    def start(standing: Standing): Unit =
      ReleaseQueues.copiers(piece.conf).submit(new PlacingState(piece, standing))
    waiting.add(new Waiting(piece.run, isReady, start, () => HeldState.forgetRun(piece.run)))
    poll()
  }

  /** One thread asks for all that wait, and ends when none does. */
  private def poll(): Unit = if (isPolling.compareAndSet(false, true)) {
    val thread = Workers.daemons("penstock-release-poll").newThread { () =>
      try
        while (!waiting.isEmpty) {
          askOnce()
          TimeUnit.MILLISECONDS.sleep(PollMs)
        }
      finally {
        isPolling.set(false)
        // However this thread ends, what waits is asked for by another.
        if (!waiting.isEmpty) poll()
      }
    }
    thread.start()
  }

  private def askOnce(): Unit =
    waiting.toArray(Array.empty[Waiting]).groupBy(_.run).foreach { case (run, those) =>
      try
        ReleaseQueues.ask(HowFar(run)) match {
          case standing: Standing =>
            val (ready, others) = those.partition(_.isReady(standing))
            ready.foreach(one => if (waiting.remove(one)) one.start(standing))
            if (standing.stopped.isDefined) others.foreach(end)
          case NotReleasing => those.foreach(end)
        }
      catch { case NonFatal(e) => logWarning(s"asking the driver about run $run failed", e) }
    }

  private def end(one: Waiting): Unit = if (waiting.remove(one)) one.ended()
}
