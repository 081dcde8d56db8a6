// Scala because: it ends the planning of a batch, and with it the query, on the thread that plans.
package org.apache.spark.sql.penstock.columnar

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.penstock.{LogSource, RunningQuery}

import penstock.BadCall
import penstock.settings.Keys

/**
 * The refusal of a query that insists on the GPU and would run without it. Plans that belong to no
 * running query, such as those of `explain`, and batches without rows are not refused.
 */
private[columnar] object InsistedGpu {

  def refusal(reason: String): BadCall = new BadCall(
    "no_device",
    s"the gpu is insisted on (${Keys.Devices}) and this query cannot have it: $reason; set it to " +
      "auto, panes or cpu")

  /** Refuses a batch that insists on the GPU and has nothing that goes to workers. */
  def check(plan: SparkPlan, setting: String): Unit =
    if (setting == Keys.GpuDevices && isOfBatch(plan) && !plan.exists(isInWorkers))
      throw refusal("it has no aggregate over windows that workers could make")

  /** Whether rows of a stream go through a plan; those of a query without the log always count. */
  def isOfBatch(plan: SparkPlan): Boolean = RunningQuery.streamThread.exists { case (query, _) =>
    val sources = RunningQuery.sourcesOf(query)
    plan.exists(_.isInstanceOf[MicroBatchScanExec]) ||
    (sources.nonEmpty && !sources.exists(_.isInstanceOf[LogSource]))
  }

  /** What a function of the user's runs on is its own affair. */
  private def isInWorkers(node: SparkPlan): Boolean = node match {
    case _: ColumnarPanesExec | _: ColumnarMapExec => true
    case _ => false
  }
}
