// Scala because: it makes nodes of Spark's physical plan, for which Spark then generates code.
package org.apache.spark.sql.penstock.windows

import org.apache.spark.sql.catalyst.expressions.{
  Add,
  Alias,
  And,
  Attribute,
  CreateNamedStruct,
  Expression,
  KnownNullable,
  Literal,
  NamedExpression,
  PreciseTimestampConversion
}
import org.apache.spark.sql.catalyst.expressions.aggregate.PartialMerge
import org.apache.spark.sql.execution.{ExpandExec, FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.types.{LongType, StructType}

/**
 * The plan that aggregates rows per pane, and only then makes a row per window:
 *
 *   1. rows get the start of their pane instead of their windows,
 *   2. and are aggregated by it and the other keys;
 *   3. each of these partial results is copied once per window of its pane,
 *   4. those of windows that a filter of the query drops are dropped,
 *   5. and those of one window and key are merged.
 *
 * It yields the columns of the aggregate that it replaces, under the same ids, so that nothing above
 * it changes, state least of all.
 */
private[windows] object PanePlan {

  /** The plan for an aggregate of a stateful operator, or why it does not fit. */
  def of(windowed: WindowedAggregate, operator: Long): Either[String, SparkPlan] =
    withPanes(windowed, operator).map(_._2)

  /**
   * The same for windows that do not overlap, where a pane is a window: its steps 1, 2 and 4, and the
   * window in place of its start. It is for workers alone, as Spark's own plan does no more.
   */
  def ofOneWindow(windowed: WindowedAggregate, operator: Long): Either[String, TumblingAggregate] =
    withPanes(windowed, operator).map { case (perPane, plan) => TumblingAggregate(perPane, plan) }

  /** The aggregate per pane, and the plan that it is a part of. */
  private def withPanes(
      windowed: WindowedAggregate,
      operator: Long): Either[String, (HashAggregateExec, SparkPlan)] = {
    import windowed._
    val pane = Alias(start, "pane")()
    val perPane = hash.copy(
      groupingExpressions = hash.groupingExpressions.updated(key, pane.toAttribute),
      resultExpressions = hash.resultExpressions.updated(key, pane.toAttribute),
      child = rowsWith(windowed, pane))
    val time = SlidingWindows.timesIn(start).head
    perPane.setTagValue(PaneAggregate.Tag, PaneAggregate(pane.toAttribute, time, windows, operator))
    val bounds = (0 until windows.count).map(windowOf(windowed, pane.toAttribute, _))
    val plan =
      if (windows.overlap) merged(windowed, bounds, perPane)
      else made(windowed, bounds.head, perPane)
    Either.cond(
      bounds.forall(_.dataType == hash.groupingExpressions(key).dataType),
      (perPane, plan),
      "its windows are of a type that is not known")
  }

  private def keysOf(hash: HashAggregateExec): Seq[Attribute] =
    hash.groupingExpressions.map(_.toAttribute)

  private def buffersOf(hash: HashAggregateExec): Seq[Attribute] =
    hash.resultExpressions.drop(hash.groupingExpressions.size).map(_.toAttribute)

  /** Steps 3 to 5. */
  private def merged(
      windowed: WindowedAggregate,
      bounds: Seq[Expression],
      perPane: SparkPlan): SparkPlan = {
    import windowed._
    val (keys, buffers) = (keysOf(hash), buffersOf(hash))
    val perWindow = ExpandExec(
      projections = bounds.map(window => (keys: Seq[Expression]).updated(key, window) ++ buffers),
      output = keys ++ buffers,
      child = perPane)
    hash.copy(
      groupingExpressions = keys,
      aggregateExpressions =
        hash.aggregateExpressions.map(_.copy(mode = PartialMerge, filter = None)),
      initialInputBufferOffset = keys.size,
      child = filtered(windowed, perWindow))
  }

  /** Partial results with the only window of their pane. */
  private def made(
      windowed: WindowedAggregate,
      bounds: Expression,
      perPane: SparkPlan): SparkPlan = {
    import windowed._
    val keys = keysOf(hash)
    val columns = (keys: Seq[NamedExpression]).updated(key, passed(bounds, keys(key)))
    filtered(windowed, ProjectExec(columns ++ buffersOf(hash), perPane))
  }

  /** The rows of the aggregate with the start of their pane where its key was the window. */
  private def rowsWith(windowed: WindowedAggregate, pane: Alias): SparkPlan = {
    import windowed._
    val others = rows.output.indices.filter(_ != column).map { index =>
      passed(rows.copies.head(index), rows.output(index))
    }
    steps.foldLeft[SparkPlan](ProjectExec(pane +: others, rows.child)) {
      case (child, filter: FilterExec) =>
        val (ofRows, _) = PaneDecision.conditionsOf(filter, names)
        ofRows.reduceOption(And(_, _)).fold(child)(FilterExec(_, child))
      case (child, project: ProjectExec) =>
        val kept = project.projectList.filterNot(PaneDecision.isNamed(_, names))
        project.copy(projectList = pane.toAttribute +: kept, child = child)
      case (_, other) => throw new MatchError(other)
    }
  }

  /** Partial results without those of windows that a filter of the query drops. */
  private def filtered(windowed: WindowedAggregate, perWindow: SparkPlan): SparkPlan = {
    import windowed._
    val window = hash.groupingExpressions(key).toAttribute
    val ofWindows = steps.collect { case filter: FilterExec =>
      PaneDecision.conditionsOf(filter, names)._2.map(_.transform {
        case attribute: Attribute if names.contains(attribute.exprId) => window
      })
    }.flatten
    ofWindows.reduceOption(And(_, _)).fold(perWindow)(FilterExec(_, perWindow))
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
