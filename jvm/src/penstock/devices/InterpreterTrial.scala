// Scala because: planning asks it on the stream thread of a query, and executors as they start.
package penstock.devices

import scala.util.control.NonFatal

import penstock.{Backoff, Clock}

/**
 * Whether the interpreter of this JVM's Python workers can be used, found out on a thread beside all
 * others. What failed is tried again, after pauses that grow: a busy machine may have been too slow,
 * and what was missing may come to be installed.
 */
final class InterpreterTrial(clock: Clock) {
  import InterpreterTrial._

  private var thread = Option.empty[Thread]
  private var outcome = Option.empty[Outcome]
  private var isClosed = false

  /** What the last try came to; None before the first is over. */
  def known: Option[Outcome] = synchronized(outcome)

  /** The same, waited for if a first try is under way. */
  def awaited: Option[Outcome] = {
    clock.await(this, AwaitedMs)(outcome.isDefined || thread.isEmpty || isClosed)
    known
  }

  /** Begins to try, unless it has begun. Every outcome is told before it is known here. */
  def begin(attempt: => Outcome)(tell: Outcome => Unit): Unit = synchronized {
    if (thread.isEmpty && !isClosed) {
      val fresh = new Thread(() => tryUntilItCan(() => attempt, tell), "penstock-interpreter")
      fresh.setDaemon(true)
      thread = Some(fresh)
      fresh.start()
    }
  }

  /** Tries no more; a process that is under way is ended. */
  def close(): Unit = synchronized {
    isClosed = true
    notifyAll()
    thread.foreach(_.interrupt())
  }

  private def tryUntilItCan(attempt: () => Outcome, tell: Outcome => Unit): Unit =
    try {
      val pauses = new Backoff(clock, FirstPauseMs, LongestPauseMs)
      while (!isOver) {
        val made = outcomeOf(attempt)
        tell(made)
        synchronized {
          outcome = Some(made)
          notifyAll()
        }
        if (made.isLeft) clock.await(this, pauses.nextMs())(isClosed)
      }
    } catch { case _: InterruptedException => } // it is closed

  private def isOver: Boolean = synchronized(isClosed || outcome.exists(_.isRight))

  private def outcomeOf(attempt: () => Outcome): Outcome =
    try attempt()
    catch { case NonFatal(e) => Left(s"Python workers could not be tried out: $e") }
}

object InterpreterTrial {

  /** The interpreter, or why it cannot be used. */
  type Outcome = Either[String, Interpreter]

  val FirstPauseMs = 30000L
  val LongestPauseMs = 600000L

  /** Longer than a try may take. */
  private val AwaitedMs = InterpreterProcess.LimitMs + 10000
}
