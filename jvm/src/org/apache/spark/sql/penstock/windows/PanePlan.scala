// Scala because: it makes nodes of Spark's physical plan, for which Spark then generates code.
package org.apache.spark.sql.penstock.windows

import org.apache.spark.sql.catalyst.expressions.{
  Add,
  Alias,
  Attribute,
  CreateNamedStruct,
  Expression,
  KnownNullable,
  Literal,
  NamedExpression,
  PreciseTimestampConversion
}
import org.apache.spark.sql.catalyst.expressions.aggregate.PartialMerge
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.types.{LongType, StructType}

/**
 * The plan that aggregates rows per pane, and only then makes a row per window:
 *
 *   1. rows get the start of their pane instead of their windows,
 *   2. and are aggregated by it and the other keys;
 *   3. each of these partial results is copied once per window of its pane,
 *   4. and those of one window and key are merged.
 *
 * It yields the columns of the aggregate that it replaces, under the same ids, so that nothing above
 * it changes, state least of all.
 */
private[windows] object PanePlan {

  /** The plan for an aggregate, or why it does not fit. */
  def of(windowed: WindowedAggregate): Either[String, SparkPlan] = {
    import windowed._
    val pane = Alias(start, "pane")()
    val keys = hash.groupingExpressions.map(_.toAttribute)
    val buffers = hash.resultExpressions.drop(keys.size).map(_.toAttribute)
    val perPane = hash.copy(
      groupingExpressions = hash.groupingExpressions.updated(key, pane.toAttribute),
      resultExpressions = hash.resultExpressions.updated(key, pane.toAttribute),
      child = rowsWith(windowed, pane))
    val bounds = (0 until windows.count).map(windowOf(windowed, pane.toAttribute, _))
    val perWindow = expand.copy(
      projections = bounds.map(window => (keys: Seq[Expression]).updated(key, window) ++ buffers),
      output = keys ++ buffers,
      child = perPane)
    Either.cond(
      bounds.forall(_.dataType == keys(key).dataType),
      hash.copy(
        groupingExpressions = keys,
        aggregateExpressions =
          hash.aggregateExpressions.map(_.copy(mode = PartialMerge, filter = None)),
        initialInputBufferOffset = keys.size,
        child = perWindow),
      "its windows are of a type that is not known")
  }

  /** The rows of the aggregate with the start of their pane where its key was the window. */
  private def rowsWith(windowed: WindowedAggregate, pane: Alias): SparkPlan = {
    import windowed._
    val others = expand.output.indices.filter(_ != column).map { index =>
      passed(expand.projections.head(index), expand.output(index))
    }
    steps.foldLeft[SparkPlan](ProjectExec(pane +: others, expand.child)) {
      case (child, filter: FilterExec) => filter.copy(child = child)
      case (child, project: ProjectExec) =>
        val kept = project.projectList.filterNot(PaneDecision.isNamed(_, names))
        project.copy(projectList = pane.toAttribute +: kept, child = child)
      case (_, other) => throw new MatchError(other)
    }
  }

  private def passed(expression: Expression, output: Attribute): NamedExpression =
    expression match {
      case attribute: Attribute if attribute.exprId == output.exprId => attribute
      case other =>
        Alias(other, output.name)(exprId = output.exprId, explicitMetadata = Some(output.metadata))
    }

  /** The window that is so many slides before the newest one of a pane. */
  private def windowOf(windowed: WindowedAggregate, pane: Attribute, slides: Int): Expression = {
    val windows = windowed.windows
    val fields = windowed.hash.groupingExpressions(windowed.key).dataType match {
      case struct: StructType => struct.fieldNames.toSeq
      case _ => Seq("start", "end")
    }
    val startUs = -slides * windows.slideUs
    val bounds = Seq(startUs, startUs + windows.rangeUs).map(moved(pane, _))
    CreateNamedStruct(fields.zip(bounds).flatMap { case (name, bound) =>
      Seq(Literal(name), bound)
    })
  }

  /** A time moved by a constant; null where it is null, and nullable as Spark's windows are. */
  private def moved(time: Attribute, byUs: Long): Expression = {
    val number = PreciseTimestampConversion(time, time.dataType, LongType)
    val sum = PreciseTimestampConversion(Add(number, Literal(byUs)), LongType, time.dataType)
    if (sum.nullable) sum else KnownNullable(sum)
  }
}
