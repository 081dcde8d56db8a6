// Scala because: rules of Spark's planner ask it while they plan a batch.
package penstock.devices

import penstock.settings.Keys
import penstock.wire.BatchPlan

/** How the aggregate below a shuffle is to be made in the batch that is planned now. */
sealed trait PathChoice

object PathChoice {

  /** As Spark plans it. */
  final case class BySpark(reason: String) extends PathChoice

  /** By panes, in Spark. */
  case object ByPanes extends PathChoice

  /**
   * By panes, in Python workers.
   *
   * @param devices one for each operation, or one for all
   * @param mustNotFallBack a task that cannot have its device fails
   * @param isForced a setting says so, and no plan
   */
  final case class InWorkers(devices: Seq[String], mustNotFallBack: Boolean, isForced: Boolean)
      extends PathChoice

  /**
   * The choice by a query's setting and the plan of its batch. A setting other than `auto` comes
   * before any plan; without both it is by panes.
   */
  def of(setting: String, plan: Option[BatchPlan]): PathChoice =
    if (setting == Keys.SparkDevices) BySpark(s"${Keys.Devices} is $setting")
    else if (setting == Keys.CpuDevices || setting == Keys.GpuDevices)
      InWorkers(Seq(setting), mustNotFallBack = setting == Keys.GpuDevices, isForced = true)
    else if (setting == Keys.AutoDevices) plan.fold[PathChoice](ByPanes)(asPlanned)
    else ByPanes

  private def asPlanned(plan: BatchPlan): PathChoice = plan.path match {
    case BatchPlan.Spark => BySpark(s"this batch is planned so: ${plan.reason}")
    case BatchPlan.Columnar =>
      InWorkers(plan.operations.map(_.device), plan.mustNotFallBack, isForced = false)
    case _ => ByPanes
  }
}
