// Scala because: it changes predicates of operators in Spark's physical plan.
package org.apache.spark.sql.penstock.eviction

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{BaseStreamingDeduplicateExec, StateStoreSaveExec}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.penstock.{ReferencedLong, SparkField, SparkMembers}

/**
 * Has the code of an operator's predicates refer to the watermark. Called for the node that is executed,
 * on the driver: Spark's rules copy nodes until then, and tasks are sent the node as it is.
 */
private[eviction] object WatermarkCode {
  def isKnown(operator: SparkPlan): Boolean = operator match {
    case _: StateStoreSaveExec | _: BaseStreamingDeduplicateExec | _: StreamingSymmetricHashJoinExec =>
      true
    case _ => false
  }

  def refer(operator: SparkPlan): Unit = operator match {
    case save: StateStoreSaveExec =>
      refer(save, SparkMembers.SaveLate)(_.watermarkExpressionForLateEvents)
      refer(save, SparkMembers.SaveEvicted)(_.watermarkExpressionForEviction)
    case distinct: BaseStreamingDeduplicateExec =>
      refer(distinct, SparkMembers.DeduplicateLate)(_.watermarkExpressionForLateEvents)
    case join: StreamingSymmetricHashJoinExec =>
      val predicates = join.stateWatermarkPredicates
      SparkMembers.JoinEvicted.setIfAny(
        join, JoinStateWatermarkPredicates(predicates.left.map(referring), predicates.right.map(referring)))
    case _ =>
  }

  /** Asking for the expression makes it, once: only then it can be replaced. */
  private def refer[A](node: A, field: SparkField[A, Option[Expression]])(
      expression: A => Option[Expression]): Unit =
    expression(node).foreach(made => field.setIfAny(node, Some(referring(made))))

  private def referring(predicate: JoinStateWatermarkPredicate): JoinStateWatermarkPredicate =
    predicate match {
      case key: JoinStateKeyWatermarkPredicate => key.copy(expr = referring(key.expr))
      case value: JoinStateValueWatermarkPredicate => value.copy(expr = referring(value.expr))
    }

  private def referring(expired: Expression): Expression = ReferencedLong.in(expired)
}
