// Scala because: Spark tells its listeners in the driver's JVM of jobs, stages and tasks.
package penstock.observe

import java.util.Properties

import scala.collection.mutable

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.ui.{
  SparkListenerSQLExecutionEnd,
  SparkListenerSQLExecutionStart
}
import org.apache.spark.sql.penstock.PlanningEnd
import org.apache.spark.sql.streaming.StreamingQueryListener.{
  QueryProgressEvent,
  QueryTerminatedEvent
}
import org.apache.spark.storage.BroadcastBlockId

import penstock.client.RequestTotals
import penstock.eviction.ScanNames
import penstock.wire.Json

/**
 * What Spark reports of the last batches of every running query, as it comes: its jobs, stages and
 * tasks with their times, and what the JVM has counted meanwhile. What a batch spent its time on is
 * made of these records by `penstock.observe`, in Python.
 */
final class BatchRecords(requests: RequestTotals, stamps: TaskStamps) extends SparkListener {
  import BatchRecords._

  private val byQuery = mutable.Map.empty[String, mutable.LinkedHashMap[Long, Batch]]
  private val stages = mutable.Map.empty[Int, Batch]
  private val jobs = mutable.Map.empty[Int, Batch]

  /** SQL executions under way by number, and those of them that run a batch's jobs. */
  private val executionsMs = mutable.Map.empty[Long, Long]
  private val executions = mutable.Map.empty[Long, Batch]
  private var counted = Counters.now(requests)
  private val shuffleBytesByRun = mutable.Map.empty[String, Long].withDefaultValue(0L)
  private val broadcasts = new BroadcastBytes

  override def onJobStart(started: SparkListenerJobStart): Unit = synchronized {
    batchOf(started.properties).foreach { batch =>
      batch.jobs(started.jobId) = Job(started.time)
      batch.run = Option(started.properties.getProperty(RunKey))
      jobs(started.jobId) = batch
      started.stageIds.foreach(stage => stages(stage) = batch)
      noteExecution(batch, started.properties)
    }
  }

  override def onJobEnd(ended: SparkListenerJobEnd): Unit = synchronized {
    jobs.remove(ended.jobId).foreach { batch =>
      batch.jobs(ended.jobId).endedMs = ended.time
      stages.filterInPlace((_, of) => of ne batch)
    }
  }

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit =
    synchronized(broadcasts.submitted(submitted.stageInfo.stageId))

  override def onTaskStart(started: SparkListenerTaskStart): Unit =
    synchronized(broadcasts.launched(started.stageId))

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit = synchronized {
    val stage = completed.stageInfo
    broadcasts.launched(stage.stageId)
    for {
      batch <- stages.get(stage.stageId)
      submittedMs <- stage.submissionTime
      completedMs <- stage.completionTime
    } batch.stages += Stage(stage.stageId, submittedMs, completedMs)
  }

  override def onTaskEnd(ended: SparkListenerTaskEnd): Unit = synchronized {
    val stamp = stamps.take(ended.taskInfo.taskId)
    stages.get(ended.stageId).foreach { batch =>
      noteScan(batch, ended)
      batch.tasks += taskJson(ended.stageId, ended.taskInfo, Option(ended.taskMetrics), stamp)
      if (!ended.taskInfo.successful) batch.hasFailedAttempts = true
      for (run <- batch.run; measured <- Option(ended.taskMetrics)) {
        shuffleBytesByRun(run) += measured.shuffleWriteMetrics.bytesWritten
      }
    }
  }

  /**
   * Only pieces that the driver puts count: what a batch broadcasts is put once as it is, and once in
   * pieces, and executors tell of those that they have fetched. A piece that is removed is told of
   * with its size too.
   */
  override def onBlockUpdated(updated: SparkListenerBlockUpdated): Unit = {
    val info = updated.blockUpdatedInfo
    val isPut = info.storageLevel.isValid && info.blockManagerId.isDriver
    info.blockId match {
      case BroadcastBlockId(_, piece) if isPut && piece.startsWith("piece") =>
        synchronized(broadcasts.put(info.memSize + info.diskSize))
      case _ =>
    }
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case made: QueryProgressEvent => synchronized {
      val progress = made.progress
      val batch = batchAt(progress.id.toString, progress.batchId)
      val now = Counters.now(requests)
      batch.progress = Some(progress.json)
      batch.counters = now.since(counted) ++ broadcasts.take()
      counted = now
    }
    case began: SparkListenerSQLExecutionStart => synchronized {
      executionsMs(began.executionId) = began.time
    }
    case ended: SparkListenerSQLExecutionEnd => synchronized {
      executionsMs -= ended.executionId
      executions.remove(ended.executionId).foreach { batch =>
        batch.plannedMs = PlanningEnd.ofMs(ended)
        batch.executionEndedMs = Some(ended.time)
      }
    }
    case ended: QueryTerminatedEvent => synchronized {
      byQuery -= ended.id.toString
      shuffleBytesByRun -= ended.runId.toString
    }
    case _ =>
  }

  /** The tasks of a batch that read rows are those that count in this metric of a scan. */
  def watchScan(query: String, batch: Long, rowsMetric: Long): Unit = synchronized {
    batchAt(query, batch).scanRowsMetric = Some(rowsMetric)
  }

  /** The tasks of a batch have appended their rows to the log; times are summed over them. */
  def appended(query: String, batch: Long, times: SinkTimes): Unit = synchronized {
    val of = batchAt(query, batch)
    of.sinkTimes = of.sinkTimes.plus(times)
  }

  /** The finished batches of a query that are remembered, oldest first, as a JSON array. */
  def json(query: String): String = synchronized {
    val all = Json.createArrayNode()
    for {
      batches <- byQuery.get(query)
      batch <- batches.values
      progress <- batch.progress
    } all.add(batch.node(progress))
    all.toString
  }

  /** What a batch cost; None as long as Spark has not reported all of it. */
  def cost(query: String, number: Long): Option[BatchCost] = synchronized {
    for {
      batches <- byQuery.get(query)
      batch <- batches.get(number)
      progress <- batch.progress
    } yield BatchCost.of(batch, progress)
  }

  /** Whether an attempt of a task of the batch has failed, or was killed. */
  def hasFailedAttempts(run: String, number: Long): Boolean = synchronized {
    byQuery.values.flatMap(_.get(number)).exists(batch => batch.run.contains(run) && batch.hasFailedAttempts)
  }

  /** How much the tasks of a run have written for shuffles so far. */
  def shuffleBytes(run: String): Long = synchronized(shuffleBytesByRun(run))

  /** How many batches are remembered, of all queries. */
  def size: Int = synchronized(byQuery.values.map(_.size).sum)

  /** Spark runs a batch in one execution, and what collects the sink's answers in another in it. */
  private def noteExecution(batch: Batch, properties: Properties): Unit = {
    def number(key: String): Option[Long] =
      Option(properties.getProperty(key)).flatMap(_.toLongOption)
    val inner = number(ExecutionKey)
    if (batch.executionStartedMs.isEmpty) {
      batch.executionStartedMs = inner.flatMap(executionsMs.get)
    }
    number(RootExecutionKey).orElse(inner).filter(executionsMs.contains).foreach { outer =>
      executions(outer) = batch
    }
  }

  private def noteScan(batch: Batch, ended: SparkListenerTaskEnd): Unit = for {
    watched <- batch.scanRowsMetric if ended.taskInfo.successful
    metric <- ended.taskInfo.accumulables.find(_.id == watched)
    rows <- metric.update.flatMap(_.toString.toLongOption)
    measured <- Option(ended.taskMetrics)
  } batch.scan = batch.scan.plus(measured.executorRunTime, rows)

  private def batchOf(properties: Properties): Option[Batch] = for {
    known <- Option(properties)
    query <- Option(known.getProperty(QueryKey))
    number <- Option(known.getProperty(BatchKey)).flatMap(_.toLongOption)
  } yield batchAt(query, number)

  private def batchAt(query: String, number: Long): Batch = {
    val batches = byQuery.getOrElseUpdate(query, mutable.LinkedHashMap.empty)
    val batch = batches.getOrElseUpdate(number, new Batch)
    if (batches.size > BatchesKept) batches -= batches.head._1
    batch
  }
}

private object BatchRecords {

  /** Local properties that Spark's stream thread gives to its jobs. */
  val QueryKey = "sql.streaming.queryId"
  val BatchKey = "streaming.sql.batchId"
  val RunKey = "spark.jobGroup.id"
  val ExecutionKey = "spark.sql.execution.id"
  val RootExecutionKey = "spark.sql.execution.root.id"

  /** Of each query. */
  val BatchesKept = 200

  /** Spark's names of the times that a Python worker measures of its task. */
  private val WorkerTimes = Set(
    "time to start Python workers",
    "time to initialize Python workers",
    "time to execute Python code",
    "time to run Python workers")

  /** Spark's names of the times that a stateful operator measures in its tasks. */
  private val StateTimes = Set("time to update", "time to remove", "time to commit changes")

  /** The metrics of tasks that are kept. */
  val Reported: Set[String] = WorkerTimes ++ StateTimes ++
    SourceTime.all.map(_.description).toSet ++ Set(ScanNames.Skipped, ScanNames.Made)

  final case class Job(startedMs: Long, var endedMs: Long = 0)
  final case class Stage(id: Int, submittedMs: Long, completedMs: Long)

  /** One batch of one query, as far as events of it have come. */
  final class Batch {
    val jobs = mutable.LinkedHashMap.empty[Int, Job]
    val stages = mutable.ArrayBuffer.empty[Stage]
    val tasks = mutable.ArrayBuffer.empty[ObjectNode]
    var run = Option.empty[String]
    var hasFailedAttempts = false
    var progress = Option.empty[String]
    var counters = Seq.empty[(String, Long)]
    var plannedMs = Option.empty[Long]
    var executionStartedMs = Option.empty[Long]
    var executionEndedMs = Option.empty[Long]
    var sinkTimes = SinkTimes.Zero
    var scanRowsMetric = Option.empty[Long]
    var scan = ScanTasks(0, 0, 0)

    def node(progressJson: String): ObjectNode = {
      val whole = Json.createObjectNode()
      whole.set[ObjectNode]("progress", Json.readTree(progressJson))
      plannedMs.foreach(whole.put("planned_ms", _))
      executionStartedMs.foreach(whole.put("execution_started_ms", _))
      executionEndedMs.foreach(whole.put("execution_ended_ms", _))
      val ofJobs = whole.putArray("jobs")
      jobs.values.foreach { job =>
        ofJobs.addObject().put("started_ms", job.startedMs).put("ended_ms", job.endedMs)
      }
      val ofStages = whole.putArray("stages")
      stages.foreach { stage =>
        ofStages
          .addObject()
          .put("id", stage.id)
          .put("submitted_ms", stage.submittedMs)
          .put("completed_ms", stage.completedMs)
      }
      val ofTasks = whole.putArray("tasks")
      tasks.foreach(ofTasks.add(_: ObjectNode))
      val ofCounters = whole.putObject("counters")
      ofCounters.put("sink open ns", sinkTimes.openNs)
      ofCounters.put("sink rows ns", sinkTimes.rowsNs)
      ofCounters.put("append ns", sinkTimes.appendNs)
      counters.foreach { case (name, value) => ofCounters.put(name, value) }
      whole
    }
  }

  def taskJson(
      stage: Int,
      info: TaskInfo,
      metrics: Option[org.apache.spark.executor.TaskMetrics],
      stamp: Option[TaskStamp]): ObjectNode = {
    val task = Json
      .createObjectNode()
      .put("stage", stage)
      .put("launched_ms", info.launchTime)
      .put("finished_ms", info.finishTime)
    for (stamped <- stamp; endedMs <- stamped.endedMs)
      task.put("began_ms", stamped.beganMs).put("ended_ms", endedMs)
    metrics.foreach { measured =>
      task
        .put("deserialise_ms", measured.executorDeserializeTime)
        .put("run_ms", measured.executorRunTime)
        .put("result_ms", measured.resultSerializationTime)
        .put("shuffle_write_ns", measured.shuffleWriteMetrics.writeTime)
        .put("shuffle_wait_ms", measured.shuffleReadMetrics.fetchWaitTime)
    }
    val named = task.putObject("metrics")
    for {
      metric <- info.accumulables
      name <- metric.name if Reported(name)
      update <- metric.update
      number <- update.toString.toLongOption
    } named.put(name, named.path(name).asLong() + number)
    task
  }
}
