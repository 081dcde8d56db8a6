// Scala because: it follows expressions through the nodes of Spark's physical plan.
package org.apache.spark.sql.penstock.lookahead

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, ExprId, GetStructField, NamedExpression, PlanExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{Partial, PartialMerge}
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.{InnerLike, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.execution.{ExpandExec, FilterExec, ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec
import org.apache.spark.sql.types.{StructType, TimestampNTZType, TimestampType}

/**
 * A state key as expressions over the output of one node of the plan.
 *
 * @param conditions what must hold for a row to get from there to the operator, in the order in
 *   which the plan looks at them: what comes later may fail on a row that an earlier one drops
 * @param at the event time, where there is one: a timestamp
 * @param partition the number of the partition that the row is sent to; none above the shuffle
 */
private[lookahead] final case class CarriedKey(
    key: Seq[Expression],
    conditions: Seq[Expression],
    at: Option[Expression],
    partition: Option[Expression]) {

  def required: Seq[Expression] = conditions ++ key ++ partition

  def all: Seq[Expression] = required ++ at

  /** `at` is no part of what must be computed: without it the time of arrival is taken. */
  def mapped(rewritten: Expression => Expression, isThere: Expression => Boolean): CarriedKey =
    CarriedKey(
      key.map(rewritten),
      conditions.map(rewritten),
      at.map(rewritten).filter(isThere),
      partition.map(rewritten))
}

/** Carries state keys down the plan, node by node, as long as every expression allows it. */
private[lookahead] object CarriedKey {

  /** Over the output of `node`, the input of an operator. */
  def over(node: SparkPlan, key: Seq[Expression], conditions: Seq[Expression]): CarriedKey =
    CarriedKey(key, conditions, eventTimeOf(node), None)

  /**
   * The same keys over what `inputOf` the node gives, or why they cannot be computed there. Several
   * for one where a node makes several rows of one. A join with a table drops rows of which nothing
   * below it tells, so hints from there may be for nothing: whoever counts them decides.
   */
  def below(node: SparkPlan, keys: Seq[CarriedKey]): Either[String, Seq[CarriedKey]] = node match {
    case project: ProjectExec => substituted(project, keys, definitions(project.projectList))
    case filter: FilterExec =>
      val under = keys.map(key => key.copy(conditions = filter.condition +: key.conditions))
      checked(filter, under)
    case _: EventTimeWatermarkExec | _: SortExec => checked(node, keys)
    case expand: ExpandExec =>
      val branches = expand.projections.map { projection =>
        substituted(expand, keys, expand.output.map(_.exprId).zip(projection).toMap)
      }
      branches.collectFirst { case Left(reason) => Left(reason) }
        .getOrElse(bounded(expand, branches.collect { case Right(branch) => branch }.flatten))
    case aggregate: BaseAggregateExec if isPartial(aggregate) =>
      substituted(aggregate, keys, definitions(aggregate.groupingExpressions))
    case join: BroadcastHashJoinExec if passesOn(join) => ofStreamedSide(join, keys)
    case other => Left(s"the key is not known below ${other.nodeName}")
  }

  /** The child that keys are carried to: of a join with a table the side that rows come from. */
  def inputOf(node: SparkPlan): SparkPlan = node match {
    case join: BroadcastHashJoinExec => if (join.buildSide == BuildLeft) join.right else join.left
    case other => other.children.head
  }

  /** A key of the rows that go into one partition or another, by how a shuffle divides them. */
  def divided(key: CarriedKey, partition: Expression): CarriedKey = key.copy(partition = Some(partition))

  /** How much there is to compute. */
  def sizeOf(expressions: Seq[Expression]): Int =
    expressions.map(_.collect { case any => any }.size).sum

  /** Whether rows of a stream pass through it, or are dropped: it makes none of its own. */
  private def passesOn(join: BroadcastHashJoinExec): Boolean = {
    val isDropping = join.joinType match {
      case _: InnerLike | LeftSemi => true
      case _ => false
    }
    val table = if (join.buildSide == BuildLeft) join.left else join.right
    isDropping && !table.exists(_.isInstanceOf[MicroBatchScanExec])
  }

  private def ofStreamedSide(
      join: BroadcastHashJoinExec,
      keys: Seq[CarriedKey]): Either[String, Seq[CarriedKey]] = {
    val others = keys.flatMap(_.required).flatMap(_.references.toSeq)
      .filterNot(column => inputOf(join).outputSet.contains(column))
    others.headOption.fold(checked(join, keys)) { column =>
      Left(s"${column.name} comes from the table of ${join.nodeName}")
    }
  }

  private def isPartial(aggregate: BaseAggregateExec): Boolean =
    aggregate.groupingExpressions.nonEmpty && aggregate.aggregateExpressions.forall { expression =>
      expression.mode == Partial || expression.mode == PartialMerge
    }

  private def definitions(named: Seq[NamedExpression]): Map[ExprId, Expression] = named.collect {
    case alias: Alias => alias.exprId -> alias.child
    case attribute: Attribute => attribute.exprId -> attribute
  }.toMap

  private def substituted(
      node: SparkPlan,
      keys: Seq[CarriedKey],
      defined: Map[ExprId, Expression]): Either[String, Seq[CarriedKey]] = {
    def rewritten(expression: Expression): Expression = expression.transform {
      case attribute: Attribute if defined.contains(attribute.exprId) => defined(attribute.exprId)
    }
    val missing = keys.flatMap(_.required).flatMap(_.references.toSeq)
      .filterNot(attribute => defined.contains(attribute.exprId))
    if (missing.nonEmpty) Left(s"${missing.head.name} comes out of ${node.nodeName}")
    else checked(node, keys.map(_.mapped(rewritten, isComputableBelow(node, _))))
  }

  private def checked(node: SparkPlan, keys: Seq[CarriedKey]): Either[String, Seq[CarriedKey]] = {
    val wrong = keys.flatMap(_.required).find(!isComputableBelow(node, _))
    wrong match {
      case Some(expression) if !expression.deterministic =>
        Left(s"what ${node.nodeName} computes is another thing each time")
      case Some(_) => Left(s"the key is not known below ${node.nodeName}")
      case None =>
        val timed = keys.map { key =>
          val at = key.at.filter(isComputableBelow(node, _)).orElse(eventTimeOf(inputOf(node)))
          key.copy(at = at)
        }
        bounded(node, timed)
    }
  }

  private def isComputableBelow(node: SparkPlan, expression: Expression): Boolean =
    expression.deterministic && !expression.exists(_.isInstanceOf[PlanExpression[_]]) &&
      expression.references.subsetOf(inputOf(node).outputSet)

  private def bounded(node: SparkPlan, keys: Seq[CarriedKey]): Either[String, Seq[CarriedKey]] = {
    if (sizeOf(keys.flatMap(_.all)) <= ExpressionsMax) Right(keys)
    else Left(s"below ${node.nodeName} the key takes more than $ExpressionsMax expressions to compute")
  }

  private def eventTimeOf(node: SparkPlan): Option[Expression] =
    node.output.find(_.metadata.contains(EventTimeWatermark.delayKey)).flatMap { attribute =>
      attribute.dataType match {
        case TimestampType | TimestampNTZType => Some(attribute)
        case window: StructType if window.length == 2 && window.fields(1).dataType == TimestampType =>
          Some(GetStructField(attribute, 1))
        case _ => None
      }
    }

  /** Computing a key a second time is to stay far cheaper than reading its state. */
  private val ExpressionsMax = 400
}
