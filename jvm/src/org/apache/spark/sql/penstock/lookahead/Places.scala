// Scala because: it finds nodes of Spark's physical plan while a batch is planned.
package org.apache.spark.sql.penstock.lookahead

import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.{BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec}
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

import penstock.prefetch.Candidate
import penstock.source.LogMicroBatchStream

/** A node of the plan over whose output the state keys of an operator can be computed. */
private[lookahead] final case class Place(node: SparkPlan, keys: Seq[CarriedKey])

/**
 * The places from which the keys of one input of a stateful operator can be hinted.
 *
 * @param isBarrier all rows pass the place above the shuffle before the operator gets the first
 * @param isPartlyAggregated all rows pass B before one passes the shuffle
 * @param reasons why a place is missing
 */
private[lookahead] final case class Places(
    byCandidate: Map[Candidate, Place],
    isBarrier: Boolean,
    isPartlyAggregated: Boolean,
    reasons: Seq[String]) {

  /** The place itself, or the next one that a row comes to: hints from there are late, not wrong. */
  def nearest(candidate: Candidate): Option[Candidate] =
    Candidate.all.find(later => later.rank >= candidate.rank && byCandidate.contains(later))

  /** Whether a node takes times there even if it hints nothing: above and below the shuffle. */
  def isTimed(candidate: Candidate): Boolean = candidate == Candidate.C || candidate == Candidate.D
}

private[lookahead] object Places {
  import Candidate.{A, B, C, D}

  private val LogOnly = "only a stream of Penstock's log is read ahead"

  /** Rows that wait in the log are of a later batch, by whose watermark some of them are late. */
  def of(read: StateRead): Places = {
    val places = ofBatch(read)
    val inLog = if (places.byCandidate.contains(A)) ofBatch(read.next).byCandidate.get(A) else None
    places.copy(byCandidate = places.byCandidate ++ inLog.map(A -> _))
  }

  private def ofBatch(read: StateRead): Places = {
    val top = Place(read.input, Seq(CarriedKey.over(read.input, read.key, read.conditions)))
    val above = descent(top)
    above.last.node match {
      case shuffle: ShuffleExchangeExec =>
        val isBarrier = above.init.exists(place => holdsBack(place.node))
        shuffle.outputPartitioning match {
          case hashed: HashPartitioning => around(above.last, shuffle, hashed, isBarrier)
          case other => Places(Map(D -> above.last), isBarrier, false, Seq(s"the shuffle is by $other"))
        }
      case other => Places(
          Map(D -> top), isBarrier = false, isPartlyAggregated = false,
          Seq(s"no shuffle was found between the operator and ${other.nodeName}"))
    }
  }

  private def around(
      above: Place, shuffle: ShuffleExchangeExec, hashed: HashPartitioning, isBarrier: Boolean): Places = {
    val divided = above.keys.map(CarriedKey.divided(_, hashed.partitionIdExpression))
    val steps = descent(Place(shuffle.child, divided))
    val bottomNode = steps.last.node
    val end =
      if (isLog(bottomNode)) None
      else if (bottomNode.children.isEmpty) Some(s"what waits behind ${bottomNode.nodeName} is not known: $LogOnly")
      else CarriedKey.below(bottomNode, steps.last.keys).left.toOption
    val kept = untilDropped(steps)
    val isPartlyAggregated = kept.init.exists(_.node.isInstanceOf[BaseAggregateExec])
    val lowestKept: Option[(Candidate, Place)] = Option.when(kept.size > 1)(B -> kept.last)
    val inLog: Option[(Candidate, Place)] = Option.when(isLog(bottomNode))(A -> steps.last)
    Places(
      Map[Candidate, Place](D -> above, C -> steps.head) ++ lowestKept ++ inLog, isBarrier, isPartlyAggregated,
      end.toSeq)
  }

  /**
   * The steps whose rows all come to the shuffle: down to the first join with a table, which drops
   * rows of which nothing below it tells. Then A may lose its accuracy, and B keeps its own.
   */
  private def untilDropped(steps: Seq[Place]): Seq[Place] = {
    val (above, rest) = steps.span(!_.node.isInstanceOf[BroadcastHashJoinExec])
    above ++ rest.headOption
  }

  /** Whether a node takes all rows before it gives the first. */
  private def holdsBack(node: SparkPlan): Boolean = node match {
    case _: HashAggregateExec | _: ObjectHashAggregateExec | _: SortExec => true
    case _ => false
  }

  /** Only of our log is it known what comes behind a batch. */
  private def isLog(node: SparkPlan): Boolean = node match {
    case scan: MicroBatchScanExec => scan.stream.isInstanceOf[LogMicroBatchStream]
    case _ => false
  }

  /** From a place down to the first shuffle, or to where the keys are not known any more. */
  private def descent(start: Place): Seq[Place] = start.node match {
    case _: ShuffleExchangeExec => Seq(start)
    case node =>
      CarriedKey.below(node, start.keys) match {
        case Right(keys) => start +: descent(Place(CarriedKey.inputOf(node), keys))
        case Left(_) => Seq(start)
      }
  }
}
