// Scala because: the stream thread asks with them, is answered, and reports, before every batch.
package penstock.wire

/** One operation that a batch can have planned; `text` is for people. */
final case class PlannableOperation(kind: String, text: String)

/** The GPUs of a machine: name and memory of one, the version of CUDA, and how many there are. */
final case class GpuKind(name: String, cuda: String, count: Int, bytes: Long)

/** A kind of machine that tasks run on. */
final case class MachineKind(cpu: String, cores: Int, gpu: Option[GpuKind] = None)

/**
 * The part of a query below its shuffle that can be planned, and where it may run.
 *
 * @param machines how many there are of each kind
 * @param source the number of the input whose rows they are
 * @param windows into how many windows a row falls
 */
final case class PlannablePipeline(
    operations: Seq[PlannableOperation],
    machines: Map[MachineKind, Int],
    paths: Seq[String],
    devices: String,
    policy: String,
    source: Int,
    windows: Int,
    gpuWorkers: Long)

/** The device of one operation, and why. */
final case class PlannedOperation(
    kind: String,
    device: String,
    reason: String,
    expectedMs: Option[Double])

/**
 * The plan of one batch.
 *
 * @param mustNotFallBack a task that cannot have the GPU fails the batch
 * @param bytes those that its tasks will read, which the report of the batch has again
 */
final case class BatchPlan(
    path: String,
    reason: String,
    operations: Seq[PlannedOperation],
    expectedMs: Option[Double],
    policy: String,
    isProbe: Boolean,
    mustNotFallBack: Boolean,
    bytes: Long)

/** The ways of a batch through the part below its shuffle. */
object BatchPlan {
  val Spark = "spark"
  val Panes = "panes"
  val Columnar = "columnar"
}

/** An operation of a batch as it ran on one device, summed over the tasks that ran it there. */
final case class OperationReport(
    first: Int,
    device: String,
    ms: Double,
    bytes: Long,
    rows: Long,
    tasks: Int)

/** Tasks that ran on the CPU though a GPU was planned. */
final case class FallbackReport(cause: String, tasks: Int, text: String)

/** Rows that were moved to a device. */
final case class TransferReport(ms: Double, bytes: Long)

/**
 * The planned part of a finished batch, as it ran; times and bytes are sums over its tasks.
 *
 * @param ruleMs what the driver took to carry the plan out
 */
final case class PlanReport(
    path: String,
    stageMs: Double,
    tasks: Int,
    bytes: Long,
    rows: Long,
    workerMs: Double,
    toGpu: TransferReport,
    toCpu: TransferReport,
    operations: Seq[OperationReport],
    fallbacks: Seq[FallbackReport],
    splits: Long,
    startedWorkers: Int,
    ruleMs: Double)
