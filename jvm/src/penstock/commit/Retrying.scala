// Scala because: threads of executors repeat the copy of a piece of state until it is done.
package penstock.commit

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.{PenstockException, TryAgain}
import penstock.settings.CommitSettings

/** Work that is tried again, with back-off, until it is done or has failed for too long. */
abstract class Retrying(settings: CommitSettings) extends Work with Logging {

  protected def once(): Unit

  protected def giveUp(e: Throwable): Unit

  /** There is nothing to do any more. */
  protected def isPointless: Boolean = false

  override def perform(): Unit = {
    var pauseMs = Retrying.PauseMsFirst
    var giveUpAt = Option.empty[Long]
    var isOver = isPointless
    while (!isOver) {
      try {
        once()
        isOver = true
      } catch {
        case NonFatal(e) =>
          val end = giveUpAt.getOrElse(System.nanoTime() + settings.retryMs * 1000000)
          giveUpAt = Some(end)
          isOver = isPointless
          if (!isOver && (isFinal(e) || System.nanoTime() > end)) {
            giveUp(e)
            isOver = true
          }
          if (!isOver) {
            logWarning(s"$name failed and is tried again: ${e.getMessage}")
            Thread.sleep(pauseMs)
            pauseMs = math.min(pauseMs * 2, Retrying.PauseMsMax)
          }
      }
    }
  }

  /** The same call fails for ever: a newer instance has taken over, or the call itself is wrong. */
  private def isFinal(e: Throwable): Boolean = e match {
    case _: TryAgain => false
    case _: PenstockException => true
    case _ => false
  }
}

private object Retrying {
  val PauseMsFirst = 50L
  val PauseMsMax = 5000L
}
