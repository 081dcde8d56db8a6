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
 * A number that generated code refers to, where Spark writes a literal into the code. Each batch
 * has another watermark; with this the code is the same in all of them, and compiled once.
 */
private[sql] final case class ReferencedLong(number: Long) extends LeafExpression {
  override def nullable: Boolean = false

  override def dataType: DataType = LongType

  override def eval(input: InternalRow): Any = number

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val reference = ctx.addReferenceObj("watermark", java.lang.Long.valueOf(number), "java.lang.Long")
    ExprCode.forNonNullValue(JavaCode.expression(s"$reference.longValue()", LongType))
  }

  override def toString: String = number.toString
}

/**
 * Has the code of an operator's predicates refer to the watermark. Called for the node that is executed,
 * on the driver: Spark's rules copy nodes until then, and tasks are sent the node as it is.
 */
private[eviction] object WatermarkCode {
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

  private def referring(expired: Expression): Expression = expired match {
    case LessThanOrEqual(time, Literal(number: Long, LongType)) =>
      LessThanOrEqual(time, ReferencedLong(number))
    case other => other
  }
}
