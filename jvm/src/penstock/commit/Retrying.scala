// Scala because: threads of executors repeat the copy of a piece of state until it is done.
package penstock.commit

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.{Backoff, Clock, Deadline, PenstockException, TryAgain}
import penstock.settings.CommitSettings

/**
 * Work that is tried again, with back-off, until it is done or has failed for as long as the
 * settings say, counted from its first failure.
 */
abstract class Retrying(settings: CommitSettings, clock: Clock) extends Work with Logging {

  protected def once(): Unit

  /** It goes on failing, or fails in a way that trying again does not change (`isFinal`). */
  protected def giveUp(e: Throwable): Unit

  /** There is nothing to do any more. */
  protected def isPointless: Boolean = false

  override def perform(): Unit = {
    val backoff = new Backoff(clock, Retrying.PauseMsFirst, Retrying.PauseMsMax)
    var end = Option.empty[Deadline]
    var isOver = isPointless
    while (!isOver) {
      try {
        once()
        isOver = true
      } catch {
        case NonFatal(e) =>
          end = end.orElse(Some(clock.deadline(settings.retryMs)))
          isOver = isPointless
          if (!isOver && (isFinal(e) || end.get.isOver)) {
            giveUp(e)
            isOver = true
          }
          if (!isOver) {
            logWarning(s"$name failed and is tried again: ${e.getMessage}")
            backoff.pause()
            isOver = isPointless
          }
      }
    }
  }

  /** The same call fails for ever: a newer instance has taken over, or the call itself is wrong. */
  protected final def isFinal(e: Throwable): Boolean = e match {
    case _: TryAgain => false
    case _: PenstockException => true
    case _ => false
  }
}

private object Retrying {
  val PauseMsFirst = 50L
  val PauseMsMax = 5000L
}
