// Scala because: Spark asks a source for its metrics on the stream thread, at the end of a batch.
package penstock.admission

import penstock.Clock
import penstock.wire.{Admission, BatchAdmission, BatchInput, LogInput, Share}

/** How a query has kept its terms so far, for Spark's progress. */
private[admission] final class Outcomes(clock: Clock) {
  import Outcomes._

  private var open = Option.empty[Open]
  private var last = Map.empty[String, String]
  private var batches = 0L
  private var misses = 0L

  def answered(answer: BatchAdmission): Unit =
    if (answer.cut.isDefined) open = Some(Open(answer, clock.nanos))

  /** As of now; the first call after a batch takes this moment for its end. */
  def metrics: Map[String, String] = {
    open.foreach(close)
    open = None
    last
  }

  private def close(batch: Open): Unit = {
    val tookMs = (clock.nanos - batch.sinceNs) / Clock.NsInMs.toDouble
    val slackMs = batch.answer.leftMs.map(_ - tookMs)
    batches += 1
    if (slackMs.exists(_ < 0)) misses += 1
    val numbers = Seq(
      "deadlineMs" -> batch.answer.deadlineMs,
      "slackMs" -> slackMs,
      "predictedMs" -> batch.answer.predictedMs,
      "predictionErrorMs" -> batch.answer.predictedMs.map(tookMs - _))
    last = numbers.collect { case (name, Some(ms)) => name -> math.round(ms).toString }.toMap ++ Map(
      "policy" -> batch.answer.policy,
      "reason" -> batch.answer.reason,
      "batchesCut" -> batches.toString,
      "batchesMissed" -> misses.toString)
  }
}

private[admission] object Outcomes {
  private final case class Open(answer: BatchAdmission, sinceNs: Long)

  /** What a stream of the log has that is not in the batch that was cut from it. */
  def backlog(input: BatchInput, share: Share): Map[String, String] = (input, share) match {
    case (log: LogInput, Share.LogEnd(Admission(end, latest, _, _))) =>
      Map("backlogPositions" -> math.max(0L, latest - math.max(end, log.after)).toString)
    case _ => Map.empty
  }

  /** The same of a source outside the log, which has told what a batch leaves. */
  def backlog(left: Amount): Map[String, String] =
    Seq("backlogRows" -> left.rows, "backlogBytes" -> left.bytes).collect {
      case (name, Some(count)) => name -> count.toString
    }.toMap
}
