// Scala because: its parts are nodes and expressions of Spark's physical plans.
package org.apache.spark.sql.penstock.windows

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, ExprId}
import org.apache.spark.sql.execution.{ExpandExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec

/**
 * The rows that get their windows: as many copies of each as it has windows.
 *
 * @param copies the columns of each copy, over the rows of `child`
 * @param output the columns of all copies
 */
private[windows] final case class WindowedRows(
    copies: Seq[Seq[Expression]],
    output: Seq[Attribute],
    child: SparkPlan)

private[windows] object WindowedRows {
  def of(expand: ExpandExec): WindowedRows =
    WindowedRows(expand.projections, expand.output, expand.child)

  /** Of windows that do not overlap: each row is in one. */
  def of(project: ProjectExec): WindowedRows = {
    val columns = project.projectList.map {
      case Alias(child, _) => child
      case other => other
    }
    WindowedRows(Seq(columns), project.output, project.child)
  }
}

/**
 * A partial aggregate over windows, taken apart.
 *
 * @param steps filters and projections between windows and aggregate, bottom first
 * @param column the place of the window in `rows`
 * @param start the start of a row's newest window, over the rows below the windows
 * @param names ids under which the window is known between `rows` and the aggregate
 * @param key the place of the window among the keys of the aggregate
 */
private[windows] final case class WindowedAggregate(
    hash: HashAggregateExec,
    steps: List[SparkPlan],
    rows: WindowedRows,
    column: Int,
    start: Expression,
    windows: SlidingWindows,
    names: Set[ExprId],
    key: Int)
