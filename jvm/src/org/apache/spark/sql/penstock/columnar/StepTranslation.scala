// Scala because: a step is read off a node of Spark's physical plan, in the thread that plans.
package org.apache.spark.sql.penstock.columnar

import java.util.Locale

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, ExprId, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans.{InnerLike, LeftOuter, RightOuter}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec
import org.apache.spark.sql.penstock.windows.PaneAggregate

import penstock.wire.Json

/** A step of a pipeline, and the node of the plan that it is of. */
private[columnar] final case class PlanStep(json: ObjectNode, node: SparkPlan) {
  def kind: String = json.get("step").asText
}

/** The steps that a plan has come to from the scan up, and where columns are after them. */
private[columnar] final case class TranslatedSteps(
    columns: Columns,
    steps: Vector[PlanStep],
    tables: Vector[Seq[Int]])

/** Times that are `everyUs` apart, one of them `offsetUs`: a row gets the last one before it. */
private final case class Starts(everyUs: Long, offsetUs: Long)

/**
 * Nodes below an aggregate as steps of a pipeline.
 *
 * @param known what the aggregate's panes are made of
 * @param needed the columns that any node or the aggregate uses
 * @param isExpanding whether rows get the starts of all their windows, a copy each, and not that of
 *   their pane
 */
private[columnar] final class StepTranslation(
    known: PaneAggregate,
    needed: Set[ExprId],
    isExpanding: Boolean) {

  /** With the steps of one more node. */
  def above(below: TranslatedSteps, node: SparkPlan): TranslatedSteps = node match {
    case filter: FilterExec => filtered(parsed(below, filter), filter, filter.condition)
    case project: ProjectExec => projected(parsed(below, project), project)
    case join: BroadcastHashJoinExec => joined(below, join)
    case watermark: EventTimeWatermarkExec =>
      val time = new ExpressionTranslation(below.columns)(watermark.eventTime)
      added(below, watermark, stepOf(Pipeline.EventTime).set[ObjectNode]("time", time))
    case other => throw new MatchError(other)
  }

  private def stepOf(kind: String): ObjectNode = Json.createObjectNode().put("step", kind)

  private def added(below: TranslatedSteps, node: SparkPlan, step: ObjectNode): TranslatedSteps =
    below.copy(steps = below.steps :+ PlanStep(step, node))

  private def filtered(
      below: TranslatedSteps,
      node: SparkPlan,
      condition: Expression): TranslatedSteps = {
    val translated = new ExpressionTranslation(below.columns)(condition)
    added(below, node, stepOf("filter").set[ObjectNode]("condition", translated))
  }

  /** The texts that a node parses, each parsed once, before it. */
  private def parsed(below: TranslatedSteps, node: SparkPlan): TranslatedSteps =
    ParseTranslation.textsIn(node.expressions).foldLeft(below) { (steps, text) =>
      if (steps.columns.fieldsOf(text).isDefined) steps
      else {
        val (json, columns) = ParseTranslation.of(text, steps.columns)
        added(steps, node, json).copy(columns = columns)
      }
    }

  private def projected(below: TranslatedSteps, project: ProjectExec): TranslatedSteps = {
    val step = if (isExpanding && project.projectList.exists(makesPane)) {
      val expanded = stepOf(Pipeline.Expand)
      val copies = ofWindows.map(columnsOf(project, _, below.columns))
      expanded.putArray("projections").addAll(copies.asJava)
      expanded
    } else stepOf("project").set[ObjectNode]("columns", columnsOf(project, ofPane, below.columns))
    added(below, project, step).copy(columns = columnsAfter(project, below.columns))
  }

  private def makesPane(named: NamedExpression): Boolean =
    named.exprId == known.pane.exprId && !named.isInstanceOf[Attribute]

  private def ofPane: Starts = Starts(known.windows.slideUs, known.windows.offsetUs)

  /** Each for one of a row's windows: those that start one range apart leave no gap and no overlap. */
  private def ofWindows: Seq[Starts] = (0 until known.windows.count).map { slides =>
    Starts(known.windows.rangeUs, known.windows.offsetUs + slides * known.windows.slideUs)
  }

  private def columnsOf(project: ProjectExec, starts: Starts, columns: Columns): ArrayNode = {
    val translated = new ExpressionTranslation(columns)
    val made = project.projectList.flatMap { named =>
      columns.fieldsOf(valueOf(named)) match {
        case Some(fields) => fields.map(ExpressionTranslation.columnAt)
        case None if makesPane(named) =>
          Seq(translated.pane(known.time, starts.everyUs, starts.offsetUs))
        case None => Seq(translated(named))
      }
    }
    Json.createArrayNode().addAll(made.asJava)
  }

  private def columnsAfter(project: ProjectExec, columns: Columns): Columns =
    project.projectList.foldLeft(Columns.of(Nil)) { (after, named) =>
      columns.fieldsOf(valueOf(named)) match {
        case Some(fields) => after.parsedTo(named.toAttribute, fields.size, fields.indices)
        case None => after.joinedWith(Seq(named.toAttribute))
      }
    }

  private def valueOf(named: NamedExpression): Expression = named match {
    case Alias(child, _) => child
    case other => other
  }

  private def joined(below: TranslatedSteps, join: BroadcastHashJoinExec): TranslatedSteps = {
    val sides = StaticTables.sidesOf(join)
    val step = stepOf("join").put("how", howOf(join)).put("table", "")
    val places = sides.table.output.zipWithIndex.collect {
      case (column, place) if needed(column.exprId) => place
    }
    val table = places.map(sides.table.output)
    table.foreach(column => ExpressionTranslation.typeName(column.dataType))
    keysOf(step, "keys", sides.streamKeys, below.columns)
    keysOf(step, "table_keys", sides.tableKeys, Columns.of(table))
    val after = added(below, join, step)
      .copy(columns = below.columns.joinedWith(table), tables = below.tables :+ places)
    join.condition.fold(after)(filtered(after, join, _))
  }

  private def keysOf(step: ObjectNode, name: String, keys: Seq[Expression], columns: Columns): Unit = {
    val translated = new ExpressionTranslation(columns)
    step.putArray(name).addAll(keys.map(translated(_)).asJava)
    ()
  }

  /** A condition besides the keys is a filter after an inner join, and none after others. */
  private def howOf(join: BroadcastHashJoinExec): String = (join.joinType, join.buildSide) match {
    case (_: InnerLike, _) => "inner"
    case (LeftOuter, BuildRight) | (RightOuter, BuildLeft) if join.condition.isEmpty => "left"
    case (other, _) =>
      val further = if (join.condition.isDefined) " with a further condition" else ""
      val kind = other.sql.toLowerCase(Locale.ROOT)
      throw new NotTaken(s"a $kind join$further stands below the aggregate")
  }
}
