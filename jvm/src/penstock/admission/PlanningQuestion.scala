// Scala because: the question is asked on the stream thread, and names what rules found in the plan.
package penstock.admission

import org.apache.spark.sql.penstock.StreamThread

import penstock.commit.jvm.JvmResources
import penstock.devices.{GpuWorkers, OfferedPipeline, RunPlans}
import penstock.settings.Keys
import penstock.wire.{BatchPlan, MachineKind, PlannablePipeline}

/** The part of a question that has its batch planned. */
private[admission] object PlanningQuestion {

  /** The server takes no more; a query with more is not planned. */
  private val OperationsMax = 64

  /** What rules found in the plan of the batch before; None as long as they have found nothing. */
  def of(plans: RunPlans, sources: Seq[AnyRef]): Option[PlannablePipeline] =
    plans.offered.flatMap { offered =>
      val machines = JvmResources.here.machines
      plans.gpus.foreach { case (executor, gpu) => machines.hasGpu(executor, gpu) }
      val setting = Keys.Devices.value(StreamThread.setting)
      Option.when(isAnswerable(setting, machines.counted)) {
        pipelineOf(offered, machines.counted, setting, sources.indexWhere(_ eq offered.stream))
      }.filter(pipeline => pipeline.source >= 0 && pipeline.operations.size <= OperationsMax)
    }

  /**
   * The server refuses a query that insists on a GPU where a machine has none, and only a worker can
   * tell of one: until all have, nothing is asked, and a task without one fails.
   */
  private def isAnswerable(setting: String, machines: Map[MachineKind, Int]): Boolean =
    setting != Keys.GpuDevices || (machines.nonEmpty && machines.keys.forall(_.gpu.isDefined))

  private def pipelineOf(
      offered: OfferedPipeline,
      machines: Map[MachineKind, Int],
      setting: String,
      source: Int): PlannablePipeline =
    PlannablePipeline(
      offered.operations,
      machines,
      pathsOf(offered, setting),
      setting,
      Keys.DevicesPolicy.value(StreamThread.setting),
      source,
      offered.windows,
      GpuWorkers.bound(
        setting,
        Keys.DevicesGpuWorkers.value(StreamThread.setting),
        StreamThread.tasksOfMachine))

  /** Executors come and go, so that it is looked anew at every question what workers can do. */
  private def pathsOf(offered: OfferedPipeline, setting: String): Seq[String] = {
    val isForWorkers = JvmResources.here.workerReadiness.whyNot(offered, setting).isEmpty
    Seq(BatchPlan.Spark) ++
      // Of rows in one window panes are what Spark plans.
      Option.when(offered.windows > 1)(BatchPlan.Panes) ++
      Option.when(isForWorkers)(BatchPlan.Columnar)
  }
}
