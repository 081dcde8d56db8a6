// Scala because: it changes predicates of operators in Spark's physical plan.
package org.apache.spark.sql.penstock.eviction

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{BaseStreamingDeduplicateExec, StateStoreSaveExec, StreamingGlobalLimitExec}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.penstock.{ReferencedLong, SparkField, SparkMember, SparkMembers}

/**
 * Has the code of an operator's predicates refer to the watermark. Called for the node that is executed,
 * on the driver: Spark's rules copy nodes until then, and tasks are sent the node as it is.
 */
private[eviction] object WatermarkCode {
  val Late = "late rows"
  val Eviction = "eviction"
  private val NothingCompared = "it compares no times with a watermark"

  /** What is said of an operator that is left as it is; None: `refer` knows it. */
  def noteOfUnknown(operator: SparkPlan): Option[String] = operator match {
    case _: StateStoreSaveExec | _: BaseStreamingDeduplicateExec | _: StreamingSymmetricHashJoinExec =>
      None
    case _: StreamingGlobalLimitExec => Some(NothingCompared)
    case _ =>
      Some(s"left to Spark: this rule does not know how ${operator.nodeName} compares times with a watermark")
  }

  /** Returns which of its code refers to the watermark now, and why other code does not. */
  def refer(operator: SparkPlan): String = noteOf(operator match {
    case save: StateStoreSaveExec =>
      referIn(save, Late, SparkMembers.SaveLate)(_.watermarkExpressionForLateEvents) ++
        referIn(save, Eviction, SparkMembers.SaveEvicted)(_.watermarkExpressionForEviction)
    case distinct: BaseStreamingDeduplicateExec =>
      referIn(distinct, Late, SparkMembers.DeduplicateLate)(_.watermarkExpressionForLateEvents)
    case join: StreamingSymmetricHashJoinExec =>
      referInSides(join, SparkMembers.JoinEvicted)(_.stateWatermarkPredicates)
    case _ => Nil
  })

  /** What a node compares times with the watermark for, and why that is left to Spark, if it is. */
  final case class Part(name: String, reason: Option[String])

  /** Asking for the expression makes it, once: only then it can be replaced. */
  def referIn[A](node: A, part: String, field: SparkField[A, Option[Expression]])(
      expression: A => Option[Expression]): Seq[Part] =
    expression(node).toSeq.map { made =>
      val isSet = field.setIfAny(node, Some(ReferencedLong.in(made)))
      Part(part, reasonAgainst(field, isSet, Seq(made)))
    }

  /** The same of what a join evicts; it finds late rows inside its tasks, where no rule reaches. */
  def referInSides[A](node: A, field: SparkField[A, JoinStateWatermarkPredicates])(
      predicates: A => JoinStateWatermarkPredicates): Seq[Part] = {
    val JoinStateWatermarkPredicates(left, right) = predicates(node)
    val made = Seq(left, right).flatten.map(_.expr)
    if (made.isEmpty) Nil
    else {
      val isSet = field.setIfAny(
        node, JoinStateWatermarkPredicates(left.map(referring), right.map(referring)))
      Seq(Part(Eviction, reasonAgainst(field, isSet, made)))
    }
  }

  private def referring(predicate: JoinStateWatermarkPredicate): JoinStateWatermarkPredicate =
    predicate match {
      case key: JoinStateKeyWatermarkPredicate => key.copy(expr = ReferencedLong.in(key.expr))
      case value: JoinStateValueWatermarkPredicate => value.copy(expr = ReferencedLong.in(value.expr))
    }

  private def reasonAgainst(field: SparkMember, isSet: Boolean, made: Seq[Expression]): Option[String] =
    field.lack
      .orElse(Option.unless(isSet)(s"$field cannot be set"))
      .orElse(Option.unless(made.forall(ReferencedLong.isKnown))(
        "a comparison is none that this rule knows"))

  def noteOf(parts: Seq[Part]): String = {
    val (left, referring) = parts.partition(_.reason.isDefined)
    val notes =
      Option.when(referring.nonEmpty)(s"code for ${namesOf(referring)} refers to the watermark") ++
        Option.when(left.nonEmpty)(
          s"code for ${namesOf(left)} is left to Spark: ${left.flatMap(_.reason).distinct.mkString("; ")}")
    if (notes.isEmpty) NothingCompared else notes.mkString("; ")
  }

  private def namesOf(parts: Seq[Part]): String = parts.map(_.name).mkString(" and ")
}
