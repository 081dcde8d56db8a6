// Scala because: the nodes below an aggregate and their attributes are objects of the planner.
package org.apache.spark.sql.penstock.columnar

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.expressions.{EvalMode, Expression, ExprId}
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  Average,
  Count,
  Max,
  Min,
  Sum
}
import org.apache.spark.sql.execution.{FilterExec, LocalTableScanExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec
import org.apache.spark.sql.penstock.{LogSource, PlanAttempt}
import org.apache.spark.sql.penstock.windows.PaneAggregate
import org.apache.spark.sql.types.{DataType, DecimalType, StructField, StructType}

import penstock.settings.Keys
import penstock.wire.{Json, PlannableOperation}

/** Makes the pipeline of an aggregate per pane and of all that is between it and the scan. */
private[columnar] object PipelineTranslation {

  /** Decimal sums of more digits may overflow, which only Spark's own buffers tell. */
  private val SummedDigitsMax = DecimalType.MAX_PRECISION - 10

  /** Either the pipeline, of panes or with a row for every window, or why there is none. */
  def of(
      hash: HashAggregateExec,
      known: PaneAggregate,
      isExpanding: Boolean): Either[String, Pipeline] =
    PlanAttempt.of[Either[String, Pipeline]] {
      try {
        val (scan, chain) = chainBelow(hash.child, Nil)
        Right(pipelineOf(scan, chain, hash, known, isExpanding))
      } catch { case refused: NotTaken => Left(refused.getMessage) }
    }(Left(_))

  /** Whether there is nothing to read: Spark puts an empty table where a source has no rows. */
  def isWithoutRows(plan: SparkPlan): Boolean =
    plan.collectLeaves().forall(_.isInstanceOf[LocalTableScanExec])

  /** The scan, and the nodes above it, bottom first. */
  private def chainBelow(
      plan: SparkPlan,
      above: List[SparkPlan]): (MicroBatchScanExec, List[SparkPlan]) = plan match {
    case filter: FilterExec => chainBelow(filter.child, filter :: above)
    case join: BroadcastHashJoinExec => chainBelow(StaticTables.sidesOf(join).stream, join :: above)
    case project: ProjectExec => chainBelow(project.child, project :: above)
    case watermark: EventTimeWatermarkExec => chainBelow(watermark.child, watermark :: above)
    case scan: MicroBatchScanExec if scan.stream.isInstanceOf[LogSource] && scan.supportsColumnar =>
      (scan, above)
    case _: MicroBatchScanExec => throw new NotTaken("it does not read a stream of the log")
    case other => throw new NotTaken(s"${other.nodeName} stands below the aggregate")
  }

  private def pipelineOf(
      scan: MicroBatchScanExec,
      chain: List[SparkPlan],
      hash: HashAggregateExec,
      known: PaneAggregate,
      isExpanding: Boolean): Pipeline = {
    val needed: Set[ExprId] =
      (hash :: chain).flatMap(_.expressions).flatMap(_.references).map(_.exprId).toSet
    val used = scan.output.zipWithIndex.filter { case (column, _) => needed(column.exprId) }
    val fields = used.zipWithIndex.map { case ((column, _), place) =>
      ExpressionTranslation.typeName(column.dataType)
      StructField(s"c$place", column.dataType)
    }
    val start = TranslatedSteps(Columns.of(used.map(_._1)), Vector.empty, Vector.empty)
    val below = chain.foldLeft(start)(new StepTranslation(known, needed, isExpanding).above)
    // Of a table that turns out too large to be sent Spark does the work itself, and by panes.
    if (isExpanding && below.tables.nonEmpty)
      throw new NotTaken(s"a static table is joined, and ${Keys.DevicesExpand} is true")
    val aggregate = PlanStep(grouped(hash, new ExpressionTranslation(below.columns)), hash)
    val all = below.steps :+ aggregate
    val steps = Json.createArrayNode().addAll(all.map(_.json).asJava)
    val operations = all.collect {
      case step if step.kind != Pipeline.EventTime =>
        PlannableOperation(step.kind, OperationText.of(step.node))
    }
    val input = StructType(fields)
    Pipeline(steps.toString, all.map(_.kind), operations, used.map(_._2), input, below.tables)
  }

  private def grouped(hash: HashAggregateExec, translated: ExpressionTranslation): ObjectNode = {
    val step = Json.createObjectNode().put("step", "aggregate")
    val keys = step.putArray("keys")
    hash.groupingExpressions.foreach(key => keys.add(translated(key)))
    val functions = step.putArray("aggregates")
    hash.aggregateExpressions.foreach(each => functions.add(functionOf(each, translated)))
    step
  }

  private def functionOf(each: AggregateExpression, translated: ExpressionTranslation): ObjectNode = {
    val function = each.aggregateFunction
    val (name, arguments, isAnsi) = function match {
      case Sum(child, context) => ("sum", Seq(summed(child)), context.evalMode == EvalMode.ANSI)
      case Average(child, mode) => ("mean", Seq(summed(child)), mode == EvalMode.ANSI)
      case Count(children) => ("count", children, false)
      case Min(child) => ("min", Seq(child), false)
      case Max(child) => ("max", Seq(child), false)
      case other => throw new NotTaken(s"${other.prettyName} is not among the functions of pipelines")
    }
    val node = Json.createObjectNode().put("function", name).put("is_ansi", isAnsi)
    node.put("input_type", ExpressionTranslation.typeName(typeOf(arguments)))
    val buffer = function.aggBufferAttributes.head.dataType
    node.put("type", ExpressionTranslation.typeName(buffer))
    val all = node.putArray("arguments")
    arguments.foreach(argument => all.add(translated(argument)))
    each.filter.foreach(where => node.set[ObjectNode]("where", translated(where)))
    node
  }

  private def typeOf(arguments: Seq[Expression]): DataType = arguments.head.dataType

  private def summed(child: Expression): Expression = child.dataType match {
    case decimal: DecimalType if decimal.precision > SummedDigitsMax =>
      throw ExpressionTranslation.notTaken("a sum", decimal)
    case _ => child
  }
}
