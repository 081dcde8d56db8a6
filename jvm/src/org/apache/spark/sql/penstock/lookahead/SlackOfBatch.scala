// Scala because: it reads accumulators of Spark on the driver.
package org.apache.spark.sql.penstock.lookahead

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import penstock.commit.jvm.{JvmPart, JvmResources}
import penstock.prefetch.Candidate

/**
 * The times that the nodes of one batch take, and the slack that they come to.
 *
 * @param plannedMs when the batch was planned: all its rows were in the log by then
 */
private[lookahead] final class SlackOfBatch(plannedMs: Long) {
  import SlackOfBatch._

  private val inputs = mutable.ArrayBuffer.empty[Taken]

  def taken(operator: Long, candidate: Candidate, places: Places, times: PassTimes): Unit =
    inputs += Taken(operator, candidate, places, times)

  /** By operator: of several inputs the least slack at each place. */
  def byOperator: Map[Long, Map[Candidate, Long]] = inputs.toSeq.groupBy(_.operator).map {
    case (operator, taken) =>
      val slacks = taken.groupBy(_.places).values.map(ofInput)
      val places = slacks.flatMap(_.keys).toSet
      operator -> places.map(place => place -> slacks.flatMap(_.get(place)).min).toMap
  }

  private def ofInput(taken: Seq[Taken]): Map[Candidate, Long] = {
    val places = taken.head.places
    val times = taken.flatMap(node => node.times.value.map(node.candidate -> _)).toMap
    times.get(Candidate.D).fold(Map.empty[Candidate, Long]) { above =>
      Slack.of(plannedMs, places.isBarrier, places.isPartlyAggregated, above, times.get(Candidate.C))
    }
  }
}

private object SlackOfBatch {
  final case class Taken(operator: Long, candidate: Candidate, places: Places, times: PassTimes)
}

/** Of each run the batch that was planned last, on the driver. */
private[lookahead] final class BatchSlacks extends JvmPart {
  private val last = new ConcurrentHashMap[String, SlackOfBatch]

  /** A batch is planned when the one before it is over: its slack is known, and handed on. */
  def reported(run: String, next: SlackOfBatch): Unit =
    Option(last.put(run, next)).toSeq.flatMap(_.byOperator).foreach { case (operator, slackMs) =>
      JvmResources.here.lookaheads.observed(run, operator, slackMs)
    }

  override def forgetRun(run: String): Unit = { last.remove(run); () }
}

private[lookahead] object BatchSlacks {

  /** Those of this JVM. */
  def here: BatchSlacks = JvmResources.here.parts.of(classOf[BatchSlacks])(new BatchSlacks)
}

/** The slack of each place, from the times at which rows passed. */
private[lookahead] object Slack {
  import Candidate.{A, B, C, D}

  /**
   * Milliseconds that 99 % of the rows have between a place and the first read of state. Where a
   * partial aggregate holds them back, rows pass B from when the task begins to when the aggregate
   * gives its first; else they pass it when they pass the shuffle.
   *
   * @param isBarrier the operator reads when all rows have passed the place above the shuffle;
   *   else it reads as they pass
   */
  def of(
      plannedMs: Long,
      isBarrier: Boolean,
      isPartlyAggregated: Boolean,
      above: PassTime,
      below: Option[PassTime]): Map[Candidate, Long] = {
    val readMs = if (isBarrier) above.endedMs else above.firstMs
    def since(ms: Long): Long = math.max(0, readMs - ms)
    val ofMap: Seq[(Candidate, Long)] = below.toSeq.flatMap { times =>
      val atB =
        if (isPartlyAggregated) times.firstMs - (times.firstMs - times.beganMs) / 100 else times.mostMs
      Seq(B -> since(atB), C -> since(times.mostMs))
    }
    val ofTask: (Candidate, Long) = D -> (if (isBarrier) since(math.min(above.mostMs, above.endedMs)) else 0L)
    ofMap.toMap[Candidate, Long] + ofTask + (A -> since(plannedMs))
  }
}
