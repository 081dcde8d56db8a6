// Scala because: it moves each piece of state that a task has written, from the executor that
// has it.
package penstock.commit.executor

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicBoolean

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.TryAgain
import penstock.checkpoint.location.StoreName
import penstock.commit.Workers
import penstock.commit.channel.{HowFar, IsHeld, Message, NotReleasing, Standing, Whereabouts}

/**
 * Makes the pieces of this JVM durable: appends them to the log at once where there is one, else
 * copies them to the location as soon as the offsets of their batch are durable. What went to the
 * log is copied to the location once its batch is committed.
 */
final class Copier(resources: ExecutorParts) extends Logging {
  import Copier._

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
  def awaitState(run: String, batch: Long, limitMs: Long): Unit = {
    val question = IsHeld(run, batch)
    // What another task was answered may be from before this one has written.
    resources.news.forget(question)
    try
      await(question, limitMs) { standing =>
        if (standing.asked == Whereabouts.Lost) {
          throw new TryAgain(
            "state_lost",
            s"state of batch $batch is lost with its executor; the query goes on from the last " +
              "durable batch when restarted")
        }
        standing.asked == Whereabouts.Unknown
      }
    finally resources.news.forget(question)
  }

  private def await(question: Message, limitMs: Long)(isReady: Standing => Boolean): Unit = {
    val run = question.run
    val end = resources.clock.deadline(limitMs)
    var seen = resources.changes.count
    var isOver = false
    while (!isOver) resources.news.latest(question) match {
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
        resources.changes.await(seen, LookMs)
        seen = resources.changes.count
    }
  }

  private def isReady(piece: HeldPiece, standing: Standing): Boolean =
    standing.mayMakeDurable(piece.stateFile.batch, isLarge(piece, standing))

  /** Too large for the log: the location makes it durable, once its offsets are. */
  private def isLarge(piece: HeldPiece, standing: Standing): Boolean =
    !standing.limits.take(piece.files.values.map(_.bytes))

  private def submit(piece: HeldPiece, standing: Standing): Unit =
    if (standing.withLog && !isLarge(piece, standing)) resources.appender.take(piece, standing)
    else copiers(piece).submit(new CopyingState(resources, piece, standing))

  private def copiers(piece: HeldPiece): Workers =
    resources.pools.copiers(StoreName.of(piece.files.values.head.path), piece.conf)

  /** The piece is in the log: the location follows once the batch is committed. */
  private[commit] def placeLater(piece: HeldPiece): Unit = {
    def isReady(standing: Standing): Boolean = standing.committed >= piece.stateFile.batch
    def start(standing: Standing): Unit = {
      // The marker has made durable what was answered before its sync.
      if (piece.state == HeldPieceState.Applied) {
        resources.heldState.tell(piece, HeldPieceEvent.DurableInLog)
      }
      copiers(piece).submit(new PlacingState(resources, piece, standing))
    }
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

  /** One thread looks for all that wait, and ends when none does. */
  private def poll(): Unit = if (isPolling.compareAndSet(false, true)) {
    val thread = Workers.daemons("penstock-release-poll").newThread { () =>
      try
        while (!waiting.isEmpty) {
          val seen = resources.changes.count
          startReady()
          if (!waiting.isEmpty) resources.changes.await(seen, LookMs)
        }
      finally {
        isPolling.set(false)
        // However this thread ends, what waits is asked for by another.
        if (!waiting.isEmpty) poll()
      }
    }
    thread.start()
  }

  /** Looks once how far each run is that is waited for. */
  private def startReady(): Unit =
    waiting.asScala.toSeq.groupBy(_.run).foreach { case (run, ofRun) =>
      try
        resources.news.latest(HowFar(run)) match {
          case standing: Standing =>
            val (ready, others) = ofRun.partition(_.isReady(standing))
            ready.foreach(work => if (waiting.remove(work)) work.start(standing))
            if (standing.stopped.isDefined) others.foreach(end)
          case NotReleasing => ofRun.foreach(end)
        }
      catch { case NonFatal(e) => logWarning(s"asking the driver about run $run failed", e) }
    }

  private def end(work: Waiting): Unit = if (waiting.remove(work)) work.ended()
}

private object Copier {

  /** How long a change that nobody tells of may go unseen. */
  val LookMs = 1000L
}
