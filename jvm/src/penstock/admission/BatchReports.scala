// Scala because: what a batch cost is known in the driver's JVM, where the next question is asked.
package penstock.admission

import scala.collection.mutable

import penstock.observe.BatchCost
import penstock.wire.{BatchReport, PlanReport}

/**
 * The finished batches of a query that the server is to be told of. A batch is reported once Spark
 * has told its listeners all of it, which may be after the next question. A server that was started
 * anew is told of the last ones again, with the time that the driver measured: it has not seen their
 * markers.
 *
 * @param planReportOf how the planned part of a batch ran, asked once
 */
private[admission] final class BatchReports(
    costOf: Long => Option[BatchCost],
    planReportOf: (Long, BatchCost) => Option[PlanReport] = (_, _) => None) {
  import BatchReports._

  private val awaited = mutable.LinkedHashMap.empty[Long, Ran]
  private val due = mutable.LinkedHashMap.empty[Long, BatchReport]
  private val recent = mutable.LinkedHashMap.empty[Long, BatchReport]
  private var server = Option.empty[String]

  /**
   * A batch has run.
   *
   * @param cut the number of its cut, None for a batch without data
   * @param isMarked a marker tells when it is visible
   * @param read what it has read, as its sources count
   */
  def ran(batch: Long, cut: Option[Long], isMarked: Boolean, read: Amount = Amount.Unknown): Unit = {
    awaited(batch) = Ran(cut, isMarked, read)
    keep(awaited)
  }

  /** What the next question is to tell. */
  def next(): Map[Long, BatchReport] = {
    for ((batch, ran) <- awaited.toSeq; cost <- costOf(batch)) {
      awaited -= batch
      due(batch) = report(ran, cost).copy(plan = planReportOf(batch, cost))
      recent(batch) = due(batch).copy(visibleMs = Some(cost.visibleMs))
      keep(due)
      keep(recent)
    }
    due.toMap
  }

  /** A server has answered a question that told it of these. */
  def delivered(reports: Map[Long, BatchReport], answering: String): Unit = {
    due --= reports.keys
    if (server.exists(_ != answering)) due ++= recent
    server = Some(answering)
  }
}

private object BatchReports {

  /** Of the batches of one query; older ones tell nothing that these do not. */
  val Kept = 64

  /** Of a batch without data; cuts are counted from 1. */
  val NoCut = 0L

  final case class Ran(cut: Option[Long], isMarked: Boolean, read: Amount)

  def report(ran: Ran, cost: BatchCost): BatchReport = BatchReport(
    ran.cut.getOrElse(NoCut),
    ran.read.rows.getOrElse(cost.rows),
    ran.read.bytes,
    hasData = ran.cut.isDefined,
    cost.queuedMs,
    cost.planningMs,
    cost.coreMs,
    cost.longestTaskMs,
    cost.tasks,
    Option.unless(ran.isMarked && ran.cut.isDefined)(cost.visibleMs))

  def keep[A](byBatch: mutable.LinkedHashMap[Long, A]): Unit =
    if (byBatch.size > Kept) byBatch -= byBatch.head._1
}
