// Scala because: it is kept with nodes of Spark's physical plan, from one rule to the next.
package org.apache.spark.sql.penstock.windows

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.HashAggregateExec

import penstock.wire.BatchPlan

/**
 * What the node that aggregates rows per pane is known by, for rules that come later.
 *
 * @param pane the key that is the start of a row's pane
 * @param time the time from which it is made, over the rows below the windows
 * @param operator the number of the stateful operator that the aggregate is for
 */
private[penstock] final case class PaneAggregate(
    pane: Attribute,
    time: Expression,
    windows: SlidingWindows,
    operator: Long) {

  /** The path that it takes without workers. */
  def pathInSpark: String = if (windows.overlap) BatchPlan.Panes else BatchPlan.Spark

  /** A note that it is left to that path. */
  def left(reason: String): String =
    s"left to ${if (windows.overlap) "panes" else "Spark"}: $reason"
}

private[penstock] object PaneAggregate {
  val Tag: TreeNodeTag[PaneAggregate] = TreeNodeTag[PaneAggregate]("penstock.panes")
}

/**
 * What Spark's own aggregate over windows that do not overlap is known by: the same, made for workers.
 *
 * @param perPane the aggregate by the starts of windows, itself known as one per pane
 * @param plan what yields the columns of Spark's aggregate from those of `perPane`, and it below that
 */
private[penstock] final case class TumblingAggregate(perPane: HashAggregateExec, plan: SparkPlan) {

  /** The plan with another node in place of `perPane`, which may stand below that node. */
  def by(node: SparkPlan): SparkPlan = plan.transformUp { case same if same eq perPane => node }
}

private[penstock] object TumblingAggregate {
  val Tag: TreeNodeTag[TumblingAggregate] = TreeNodeTag[TumblingAggregate]("penstock.tumbling")
}
