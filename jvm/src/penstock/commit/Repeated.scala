package penstock.commit

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

/** Work that is tried again, with back-off, until it is done or its time is up. */
abstract class Repeated(settings: Settings) extends Work with Logging {
  private val giveUpAt = System.nanoTime() + settings.retryMs * 1000000

  protected def once(): Unit

  protected def giveUp(e: Throwable): Unit

  /** There is nothing to do any more. */
  protected def isPointless: Boolean = false

  override def perform(): Unit = {
    var pauseMs = Repeated.PauseMsFirst
    var isOver = isPointless
    while (!isOver) {
      try {
        once()
        isOver = true
      } catch {
        case NonFatal(e) =>
          isOver = System.nanoTime() > giveUpAt || isPointless
          if (isOver) giveUp(e)
          else {
            logWarning(s"$name failed and is tried again: ${e.getMessage}")
            Thread.sleep(pauseMs)
            pauseMs = math.min(pauseMs * 2, Repeated.PauseMsMax)
          }
      }
    }
  }
}

private object Repeated {
  val PauseMsFirst = 50L
  val PauseMsMax = 5000L
}
