// Scala because: the stream thread of the driver's JVM waits here for what others make durable.
package penstock.commit.driver

import org.apache.spark.internal.Logging

import penstock.{Clock, TryAgain}
import penstock.settings.Keys

/**
 * Waits for the release of one run: says every few seconds what is awaited, and gives up, naming it,
 * once nothing has got any further for `limitMs`. A store that is slow, or a try that fails and is
 * repeated, is progress: those have limits and errors of their own.
 */
private[driver] final class ReleaseWait(query: String, clock: Clock, limitMs: Long) extends Logging {
  import ReleaseWait._

  @volatile private var progressNs = clock.nanos

  /** Something of the run has got further. */
  def progressed(): Unit = progressNs = clock.nanos

  /**
   * Blocks until `isReady`, which like `awaited` is looked at under the lock of `monitor`. Returns
   * why the wait was given up, if it was.
   */
  def await(monitor: AnyRef, step: String, awaited: => Seq[String])(
      isReady: => Boolean): Option[TryAgain] = {
    val startNs = clock.nanos
    var stall = Option.empty[TryAgain]
    while (stall.isEmpty && !clock.await(monitor, math.min(SayMs, limitMs))(isReady)) {
      val names = inWords(monitor.synchronized(awaited))
      val now = clock.nanos
      if (math.min(now - startNs, now - progressNs) >= limitMs * Clock.NsInMs) {
        stall = Some(stalled(names))
      } else {
        val waitedS = (now - startNs) / Clock.NsInMs / 1000
        logWarning(s"query $query: $step, for $waitedS s: it waits for $names")
      }
    }
    stall
  }

  private def stalled(names: String): TryAgain = new TryAgain(
    "commit_stalled",
    s"query $query waits for $names, and for ${limitMs / 1000} s nothing of it has got any " +
      "further. Look at the logs of the driver and of the executors that are named, and restart " +
      s"the query: it goes on from the last durable batch. A store that takes longer than that for " +
      s"one file needs a larger ${Keys.CommitStallSeconds}")

  private def inWords(names: Seq[String]): String = {
    val more = names.size - NamesMax
    names.take(NamesMax).mkString("; ") + (if (more > 0) s"; and $more more" else "")
  }
}

private object ReleaseWait {

  /** How often a wait says what it is for. */
  val SayMs = 5000L

  /** A batch of many partitions may wait for hundreds of pieces. */
  val NamesMax = 3
}
