// Scala because: it reads nodes and metrics off the physical plan that a batch is run with.
package org.apache.spark.sql.penstock.columnar

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.penstock.RunningQuery
import org.apache.spark.sql.penstock.windows.PaneAggregate

import penstock.commit.jvm.JvmResources
import penstock.devices.{OfferedPipeline, RunPlans, WorkerSums}
import penstock.settings.Keys
import penstock.wire.BatchPlan

/** Notes which path a planned batch takes, and by which metric its tasks are known. */
private[columnar] object TakenPaths {
  private val RowsMetric = "numOutputRows"

  def note(plan: SparkPlan, plans: RunPlans, setting: String): Unit = for {
    offered <- plans.offered
    planned <- plans.plan
    (query, _) <- RunningQuery.streamThread
    batch <- RunningQuery.batchOfThisThread
    scan <- plan.collectFirst { case scan: MicroBatchScanExec if scan.stream eq offered.stream => scan }
    rows <- scan.metrics.get(RowsMetric)
  } {
    val (path, place, sums) = taken(plan, offered)
    JvmResources.here.batches.watchScan(query, batch, rows.id)
    plans.runs(batch, path, planned, sums)
    if (setting == Keys.AutoDevices && path == planned.path) {
      val whyNot = JvmResources.here.workerReadiness.whyNot(offered, setting)
      val without = whyNot.fold("")(reason => s"; not in workers: $reason")
      DeviceRule.say(offered.operator, s"$path$place: ${planned.reason}$without")
    }
  }

  private def taken(
      plan: SparkPlan,
      offered: OfferedPipeline): (String, String, () => WorkerSums) = {
    val none = () => WorkerSums.Empty
    plan.collectFirst {
      case node: ColumnarPanesExec if operatorOf(node.child).contains(offered.operator) =>
        val totals = node.totals
        (BatchPlan.Columnar, s" on ${node.placed.place}", () => totals.value)
      case hash: HashAggregateExec if operatorOf(hash).contains(offered.operator) =>
        (BatchPlan.Panes, "", none)
    }.getOrElse((BatchPlan.Spark, "", none))
  }

  private def operatorOf(plan: SparkPlan): Option[Long] =
    plan.getTagValue(PaneAggregate.Tag).map(_.operator)
}
