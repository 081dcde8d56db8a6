// Scala because: rules of Spark's planner and the questions of the stream thread meet in it.
package penstock.devices

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import penstock.observe.ScanTasks
import penstock.wire.{BatchPlan, GpuKind, PlannableOperation, PlanReport}

/**
 * What batches of a run can have planned, as the rules found when they first looked.
 *
 * @param operator the number of the stateful operator whose aggregate it is
 * @param stream the source whose rows it reads
 * @param windows into how many windows a row falls
 * @param leftToSpark why it cannot run in workers, whatever these can do, if that is so
 */
final case class OfferedPipeline(
    operator: Long,
    stream: AnyRef,
    operations: Seq[PlannableOperation],
    windows: Int,
    leftToSpark: Option[String] = None)

/**
 * Planning of one run of a query that asks admission: what can be planned goes into its questions,
 * the plan of an answer is there when the batch is planned, and what the batch measured goes with a
 * later question. Of several aggregates over windows the first that was found is planned.
 */
final class RunPlans {
  import RunPlans._

  private var offer = Option.empty[OfferedPipeline]
  private var answered = Option.empty[BatchPlan]
  private val taken = mutable.LinkedHashMap.empty[Long, TakenPath]
  private var gpusByExecutor = Map.empty[String, GpuKind]

  def offered: Option[OfferedPipeline] = synchronized(offer)

  /** A rule has found what can be planned. */
  def offers(pipeline: OfferedPipeline): Unit = synchronized {
    if (offer.isEmpty) offer = Some(pipeline)
  }

  /** The last question was answered so; None: without a plan, or nothing was cut. */
  def answeredWith(plan: Option[BatchPlan]): Unit = synchronized { answered = plan }

  /** The plan of the batch that is cut now. */
  def plan: Option[BatchPlan] = synchronized(answered)

  /** The plan of the batch that is cut now, if it is for this operator. */
  def planFor(operator: Long): Option[BatchPlan] =
    synchronized(answered.filter(_ => offer.exists(_.operator == operator)))

  /**
   * The batch runs on this path; `sums` is what its workers have measured by the time it is asked.
   * A rule that is run again for a batch says so again: what it took before counts, too.
   */
  def runs(batch: Long, path: String, plan: BatchPlan, sums: () => WorkerSums): Unit = synchronized {
    taken(batch) = TakenPath(path, plan, sums, taken.get(batch).fold(0.0)(_.ruleMs))
    if (taken.size > Kept) taken -= taken.head._1
  }

  /** The rule that carries plans out took so long over a batch that runs on a path. */
  def ruleTook(batch: Long, ms: Double): Unit = synchronized {
    taken.get(batch).foreach(ran => taken(batch) = ran.copy(ruleMs = ran.ruleMs + ms))
  }

  /** Workers could not make this batch of an operator, as was found when it ran: Spark did, so. */
  def ranInSpark(operator: Long, batch: Long, path: String): Unit = synchronized {
    for (ran <- taken.get(batch) if offer.exists(_.operator == operator)) {
      taken(batch) = ran.copy(path = path, sums = () => WorkerSums.Empty)
    }
  }

  /** No later batch of the run is offered to workers. */
  def leavesWorkers(operator: Long, reason: String): Unit = synchronized {
    offer = offer.map { pipeline =>
      if (pipeline.operator == operator) pipeline.copy(leftToSpark = Some(reason)) else pipeline
    }
  }

  /** The report of a finished batch with the tasks of its scan; None for one that was not planned. */
  def report(batch: Long, stage: ScanTasks): Option[PlanReport] = synchronized {
    taken.remove(batch).map { ran =>
      val sums = ran.sums()
      gpusByExecutor ++= sums.gpus
      reportOf(ran, stage, sums)
    }
  }

  /** The GPUs that workers of this run have told of, by executor. */
  def gpus: Map[String, GpuKind] = synchronized(gpusByExecutor)
}

private object RunPlans {

  /** Of the batches of one run: as many as admission is told of at once. */
  val Kept = 64

  final case class TakenPath(path: String, plan: BatchPlan, sums: () => WorkerSums, ruleMs: Double = 0.0)

  def reportOf(ran: TakenPath, stage: ScanTasks, sums: WorkerSums): PlanReport = {
    val (toGpu, toCpu) = (sums.toGpu.report, sums.toCpu.report)
    val isColumnar = ran.path == BatchPlan.Columnar
    val workerMs = stage.runMs - sums.operationsMs - toGpu.ms - toCpu.ms
    PlanReport(
      ran.path,
      stage.runMs.toDouble,
      stage.tasks,
      ran.plan.bytes,
      stage.rows,
      if (isColumnar) math.max(0.0, workerMs) else 0.0,
      toGpu,
      toCpu,
      sums.operationReports,
      sums.fallbackReports,
      sums.splits,
      sums.newWorkers,
      ran.ruleMs)
  }
}

/** The plans of all runs of this driver that ask admission. */
final class DevicePlans {
  private val byRun = new ConcurrentHashMap[String, RunPlans]()

  /** A run asks admission from now on. */
  def asking(run: String): RunPlans = byRun.computeIfAbsent(run, _ => new RunPlans)

  /** Those of a run, if it asks. */
  def ofRun(run: String): Option[RunPlans] = Option(byRun.get(run))

  def forgetRun(run: String): Unit = { byRun.remove(run); () }

  /** How many runs ask. */
  def size: Int = byRun.size
}
