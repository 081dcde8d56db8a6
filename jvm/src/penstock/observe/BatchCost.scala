// Scala because: it is made of the events that Spark sends to listeners in the driver's JVM.
package penstock.observe

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import penstock.wire.Json

/** The tasks of a batch that read rows in one scan: how many, how long they ran, and the rows. */
final case class ScanTasks(tasks: Int, runMs: Long, rows: Long) {
  private[observe] def plus(taskRunMs: Long, taskRows: Long): ScanTasks =
    ScanTasks(tasks + 1, runMs + taskRunMs, rows + taskRows)
}

/**
 * What a finished batch cost.
 *
 * @param queuedMs how long its stages waited for their first core, summed
 * @param planningMs time of the driver in which no job of the batch ran, from the cut on
 * @param coreMs how long its tasks held cores, summed
 * @param visibleMs from the cut to the end of the sink's `addBatch`
 * @param scan of the batch that is planned, where one was watched
 */
final case class BatchCost(
    rows: Long,
    queuedMs: Long,
    planningMs: Long,
    coreMs: Long,
    longestTaskMs: Long,
    tasks: Int,
    visibleMs: Long,
    scan: Option[ScanTasks] = None)

private[observe] object BatchCost {
  def of(batch: BatchRecords.Batch, progressJson: String): BatchCost = {
    val progress = Json.readTree(progressJson)
    val stepMs = progress.path("durationMs")
    // The question for the batch may have been held, and the commit follows what a reader sees.
    val visibleMs = atLeast0(
      stepMs.path("triggerExecution").asLong() - stepMs.path("latestOffset").asLong() -
        stepMs.path("commitOffsets").asLong())
    val taskMs = batch.tasks.map(task => atLeast0(launched(task, "finished_ms") - launched(task)))
    BatchCost(
      progress.path("sources").elements().asScala.map(_.path("numInputRows").asLong()).sum,
      batch.stages.map(queuedMs(batch, _)).sum,
      atLeast0(visibleMs - inJobsMs(batch)),
      taskMs.sum,
      taskMs.maxOption.getOrElse(0L),
      taskMs.size,
      visibleMs,
      batch.scanRowsMetric.map(_ => batch.scan))
  }

  private def launched(task: JsonNode, field: String = "launched_ms"): Long = task.path(field).asLong()

  private def queuedMs(batch: BatchRecords.Batch, stage: BatchRecords.Stage): Long = batch.tasks
    .filter(_.path("stage").asInt() == stage.id)
    .map(launched(_))
    .minOption
    .fold(0L)(firstMs => atLeast0(firstMs - stage.submittedMs))

  /** How long at least one job of the batch ran: jobs may overlap. */
  private def inJobsMs(batch: BatchRecords.Batch): Long = {
    val spans = batch.jobs.values.filter(_.endedMs > 0).toSeq.sortBy(_.startedMs)
    spans.foldLeft((0L, Long.MinValue)) { case ((totalMs, untilMs), job) =>
      val fromMs = math.max(job.startedMs, untilMs)
      (totalMs + atLeast0(job.endedMs - fromMs), math.max(untilMs, job.endedMs))
    }._1
  }

  /** Times of the wall clock, which may be set back in between. */
  private def atLeast0(ms: Long): Long = math.max(0L, ms)
}
