// Scala because: tasks of Spark add it up in their JVMs, and Spark brings it to the driver.
package penstock.devices

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import penstock.wire.{FallbackReport, GpuKind, OperationReport, PlanJson, TransferReport}

/** One operation on one device, summed over rows and tasks. */
final case class OperationSum(us: Long, bytes: Long, rows: Long, tasks: Int) {
  private[devices] def plus(other: OperationSum, tasksTogether: Int): OperationSum =
    OperationSum(us + other.us, bytes + other.bytes, rows + other.rows, tasksTogether)
}

/** Rows that were moved to a device. */
final case class TransferSum(us: Long, bytes: Long) {
  def plus(other: TransferSum): TransferSum = TransferSum(us + other.us, bytes + other.bytes)

  def report: TransferReport = TransferReport(us / WorkerSums.UsInMs, bytes)
}

/** Fallbacks of one cause, with the text of the first. */
final case class FallbackSum(tasks: Int, text: String)

/**
 * What Python workers measured of the operations of a batch.
 *
 * @param operations by their number among the operations of the pipeline, and device
 * @param fallbacks by cause
 * @param gpus the GPUs that workers can use, by executor
 * @param newWorkers those that were started for their task
 */
final case class WorkerSums(
    operations: Map[(Int, String), OperationSum] = Map.empty,
    toGpu: TransferSum = TransferSum(0, 0),
    toCpu: TransferSum = TransferSum(0, 0),
    splits: Long = 0,
    fallbacks: Map[String, FallbackSum] = Map.empty,
    gpus: Map[String, GpuKind] = Map.empty,
    newWorkers: Int = 0) {
  import WorkerSums._

  /** With more of the same task: the tasks that ran an operation are as many as before. */
  def withinTask(more: WorkerSums): WorkerSums = combined(more, (before, after) => before.max(after))

  /** With what other tasks measured. */
  def plus(others: WorkerSums): WorkerSums = combined(others, _ + _)

  /** All operations, without the ways to a device. */
  def operationsMs: Double = operations.values.map(_.us).sum / UsInMs

  def operationReports: Seq[OperationReport] =
    operations.toSeq.sortBy { case (key, _) => key }.map { case ((index, device), sum) =>
      OperationReport(index, device, sum.us / UsInMs, sum.bytes, sum.rows, sum.tasks)
    }

  def fallbackReports: Seq[FallbackReport] =
    fallbacks.toSeq.sortBy { case (cause, _) => cause }.map { case (cause, sum) =>
      FallbackReport(cause, sum.tasks, sum.text)
    }

  private def combined(more: WorkerSums, tasks: (Int, Int) => Int): WorkerSums = WorkerSums(
    merged(operations, more.operations) { (mine, theirs) =>
      mine.plus(theirs, tasks(mine.tasks, theirs.tasks))
    },
    toGpu.plus(more.toGpu),
    toCpu.plus(more.toCpu),
    splits + more.splits,
    merged(fallbacks, more.fallbacks) { (mine, theirs) =>
      mine.copy(tasks = tasks(mine.tasks, theirs.tasks))
    },
    gpus ++ more.gpus,
    tasks(newWorkers, more.newWorkers))
}

object WorkerSums {
  private[devices] val UsInMs = 1000.0

  val Empty: WorkerSums = WorkerSums()

  /** What one answer of a worker says: a report of `penstock.devices.placement`. */
  def of(report: JsonNode, executor: String): WorkerSums = WorkerSums(
    each(report, "operations").map { operation =>
      val key = (operation.path("index").asInt(), operation.path("device").asText())
      key -> OperationSum(
        operation.path("us").asLong(),
        operation.path("bytes").asLong(),
        operation.path("rows").asLong(),
        tasks = 1)
    }.toMap,
    TransferSum(report.path("to_gpu_us").asLong(), report.path("to_gpu_bytes").asLong()),
    TransferSum(report.path("to_cpu_us").asLong(), report.path("to_cpu_bytes").asLong()),
    report.path("splits").asLong(),
    each(report, "fallbacks").map { fallback =>
      fallback.path("cause").asText() -> FallbackSum(1, fallback.path("text").asText())
    }.toMap,
    PlanJson.gpuOf(report).map(executor -> _).toMap,
    if (report.path("is_new_worker").asBoolean()) 1 else 0)

  private def each(report: JsonNode, field: String): Seq[JsonNode] =
    report.path(field).elements().asScala.toSeq

  private def merged[K, V](mine: Map[K, V], theirs: Map[K, V])(both: (V, V) => V): Map[K, V] =
    theirs.foldLeft(mine) { case (all, (key, value)) =>
      all.updated(key, all.get(key).fold(value)(both(_, value)))
    }
}
