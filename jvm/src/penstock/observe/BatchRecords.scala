// Scala because: Spark tells its listeners in the driver's JVM of jobs, stages and tasks.
package penstock.observe

import java.util.Properties

import scala.collection.mutable

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.scheduler._
import org.apache.spark.sql.streaming.StreamingQueryListener.{
  QueryProgressEvent,
  QueryTerminatedEvent
}
import org.apache.spark.storage.BroadcastBlockId

import penstock.eviction.ScanNames
import penstock.wire.Json

/**
 * What Spark reports of the last batches of every running query, as it comes: its jobs, stages and
 * tasks with their times, and what the JVM has counted meanwhile. What a batch spent its time on is
 * made of these records by `penstock.observe`, in Python.
 */
final class BatchRecords extends SparkListener {
  import BatchRecords._

  private val byQuery = mutable.Map.empty[String, mutable.LinkedHashMap[Long, Batch]]
  private val stages = mutable.Map.empty[Int, Batch]
  private val jobs = mutable.Map.empty[Int, Batch]
  private var counted = Counters.now()
  private var broadcastBytes = 0L

  override def onJobStart(started: SparkListenerJobStart): Unit = synchronized {
    batchOf(started.properties).foreach { batch =>
      batch.jobs(started.jobId) = Job(started.time)
      jobs(started.jobId) = batch
      started.stageIds.foreach(stage => stages(stage) = batch)
    }
  }

  override def onJobEnd(ended: SparkListenerJobEnd): Unit = synchronized {
    jobs.remove(ended.jobId).foreach { batch =>
      batch.jobs(ended.jobId).endedMs = ended.time
      stages.filterInPlace((_, of) => of ne batch)
    }
  }

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit = synchronized {
    val stage = completed.stageInfo
    for {
      batch <- stages.get(stage.stageId)
      submittedMs <- stage.submissionTime
      completedMs <- stage.completionTime
    } batch.stages += Stage(stage.stageId, submittedMs, completedMs)
  }

  override def onTaskEnd(ended: SparkListenerTaskEnd): Unit = synchronized {
    stages.get(ended.stageId).foreach { batch =>
      batch.tasks += taskJson(ended.stageId, ended.taskInfo, Option(ended.taskMetrics))
    }
  }

  /** Only whole pieces count: what a batch broadcasts is put once as it is, and once in pieces. */
  override def onBlockUpdated(updated: SparkListenerBlockUpdated): Unit = {
    val info = updated.blockUpdatedInfo
    info.blockId match {
      case BroadcastBlockId(_, piece) if piece.startsWith("piece") =>
        synchronized { broadcastBytes += info.memSize + info.diskSize }
      case _ =>
    }
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case made: QueryProgressEvent => synchronized {
      val progress = made.progress
      val batch = batchAt(progress.id.toString, progress.batchId)
      val now = Counters.now()
      batch.progress = Some(progress.json)
      batch.counters = now.since(counted) :+ ("broadcast bytes" -> broadcastBytes)
      counted = now
      broadcastBytes = 0
    }
    case ended: QueryTerminatedEvent => synchronized {
      byQuery -= ended.id.toString
    }
    case _ =>
  }

  /** The tasks of a batch have appended their rows to the log, which took so long, summed. */
  def appended(query: String, batch: Long, ns: Long): Unit = synchronized {
    batchAt(query, batch).appendNs += ns
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

  /** How many batches are remembered, of all queries. */
  def size: Int = synchronized(byQuery.values.map(_.size).sum)

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

  /** Of each query. */
  val BatchesKept = 200

  /** The metrics of tasks that are kept. */
  val Reported: Set[String] = Set(FetchTime.Description, ScanNames.Skipped, ScanNames.Made)

  final case class Job(startedMs: Long, var endedMs: Long = 0)
  final case class Stage(id: Int, submittedMs: Long, completedMs: Long)

  /** One batch of one query, as far as events of it have come. */
  final class Batch {
    val jobs = mutable.LinkedHashMap.empty[Int, Job]
    val stages = mutable.ArrayBuffer.empty[Stage]
    val tasks = mutable.ArrayBuffer.empty[ObjectNode]
    var progress = Option.empty[String]
    var counters = Seq.empty[(String, Long)]
    var appendNs = 0L

    def node(progressJson: String): ObjectNode = {
      val whole = Json.createObjectNode()
      whole.set[ObjectNode]("progress", Json.readTree(progressJson))
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
      ofCounters.put("append ns", appendNs)
      counters.foreach { case (name, value) => ofCounters.put(name, value) }
      whole
    }
  }

  def taskJson(
      stage: Int,
      info: TaskInfo,
      metrics: Option[org.apache.spark.executor.TaskMetrics]): ObjectNode = {
    val task = Json
      .createObjectNode()
      .put("stage", stage)
      .put("launched_ms", info.launchTime)
      .put("finished_ms", info.finishTime)
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
