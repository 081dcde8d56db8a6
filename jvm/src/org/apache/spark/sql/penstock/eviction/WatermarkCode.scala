// Scala because: Spark makes Java code of expressions, and ours is one of them.
package org.apache.spark.sql.penstock.eviction

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, LeafExpression, LessThanOrEqual, Literal}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, JavaCode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{BaseStreamingDeduplicateExec, StateStoreSaveExec}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.penstock.{SparkField, SparkMembers}
import org.apache.spark.sql.types.{DataType, LongType}

/**
 * A number that generated code is handed, where Spark writes a literal into it. Each batch has
 * another watermark; with this the code is the same in all of them, and compiled once.
 */
private[sql] final case class HandedLong(number: Long) extends LeafExpression {
  override def nullable: Boolean = false

  override def dataType: DataType = LongType

  override def eval(input: InternalRow): Any = number

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val handed = ctx.addReferenceObj("watermark", java.lang.Long.valueOf(number), "java.lang.Long")
    ExprCode.forNonNullValue(JavaCode.expression(s"$handed.longValue()", LongType))
  }

  override def toString: String = number.toString
}

/**
 * Hands the watermark to the code of an operator's predicates. Called for the node that is executed,
 * on the driver: Spark's rules copy nodes until then, and tasks are sent the node as it is.
 */
private[eviction] object WatermarkCode {
  def hand(operator: SparkPlan): Unit = operator match {
    case save: StateStoreSaveExec =>
      hand(save, SparkMembers.SaveLate)(_.watermarkExpressionForLateEvents)
      hand(save, SparkMembers.SaveEvicted)(_.watermarkExpressionForEviction)
    case distinct: BaseStreamingDeduplicateExec =>
      hand(distinct, SparkMembers.DeduplicateLate)(_.watermarkExpressionForLateEvents)
    case join: StreamingSymmetricHashJoinExec =>
      val predicates = join.stateWatermarkPredicates
      SparkMembers.JoinEvicted.setIfAny(
        join, JoinStateWatermarkPredicates(predicates.left.map(handed), predicates.right.map(handed)))
    case _ =>
  }

  /** Asking for the expression makes it, once: only then it can be replaced. */
  private def hand[A](node: A, field: SparkField[A, Option[Expression]])(
      expression: A => Option[Expression]): Unit =
    expression(node).foreach(made => field.setIfAny(node, Some(handed(made))))

  private def handed(predicate: JoinStateWatermarkPredicate): JoinStateWatermarkPredicate =
    predicate match {
      case key: JoinStateKeyWatermarkPredicate => key.copy(expr = handed(key.expr))
      case value: JoinStateValueWatermarkPredicate => value.copy(expr = handed(value.expr))
    }

  private def handed(expired: Expression): Expression = expired match {
    case LessThanOrEqual(time, Literal(number: Long, LongType)) =>
      LessThanOrEqual(time, HandedLong(number))
    case other => other
  }
}
