// Scala because: Spark's polling loop asks a source every ten milliseconds, on the stream
// thread.
package penstock.source

import org.apache.spark.sql.penstock.RunningQuery

import penstock.Clock
import penstock.query.TaskLog

/**
 * When to hold a question to admission open instead of letting Spark ask every 10 ms.
 *
 * The first question after a batch is answered at once, because Spark may have a batch without
 * data to run (a watermark moved); so is a question that comes a trigger interval after the one
 * before. Only Spark's polling loop, which asks again right after an empty answer, is held. One
 * source of a query holds for all of them; none does if another kind of source is among them,
 * since its data could not end the wait.
 */
private[source] final class Polling(self: LogMicroBatchStream, clock: Clock) {
  import Polling._

  @volatile private var lastAfter = -1L
  @volatile private var lastWasEmpty = false
  private var lastAnswerNs = 0L

  /** The other streams to wait for as well, or None when the question must not be held. */
  def othersToHoldFor(run: Option[TaskLog], after: Long): Option[Seq[(String, Long)]] = {
    val inLoop = lastWasEmpty && after == lastAfter &&
      clock.nanos - lastAnswerNs < LoopGapNsMax
    if (!inLoop) None
    else {
      val sources = run.toSeq.flatMap(r => RunningQuery.sourcesOf(r.query)).distinct
      val ours = sources.collect { case s: LogMicroBatchStream => s }
      if (ours.size != sources.size || !ours.headOption.contains(self)) None
      else {
        val others = ours.tail.map(_.pollingState)
        if (others.forall(_.lastWasEmpty)) Some(others.map(p => (p.stream, p.lastAfter))) else None
      }
    }
  }

  def answered(after: Long, nothingNew: Boolean): Unit = {
    lastAfter = after
    lastWasEmpty = nothingNew
    lastAnswerNs = clock.nanos
  }

  def state: State = State(self.streamName, lastAfter, lastWasEmpty)
}

private[source] object Polling {

  /** How long one question is held. `stop()` interrupts it; other waits on Spark's progress lock
    * (`processAllAvailable`) get through between two questions. */
  val HoldMs = 500L

  /** Spark's polling loop pauses 10 ms between questions; a trigger interval is longer. */
  private val LoopGapNsMax = 100L * 1000 * 1000

  final case class State(stream: String, lastAfter: Long, lastWasEmpty: Boolean)
}
