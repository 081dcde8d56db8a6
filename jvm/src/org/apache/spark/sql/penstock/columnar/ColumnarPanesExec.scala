// Scala because: it is a node of Spark's physical plan, and its tasks hand columns to Python.
package org.apache.spark.sql.penstock.columnar

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.SparkEnv
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.python.PythonSQLMetrics
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  EventTimeStats,
  EventTimeStatsAccum,
  EventTimeWatermarkExec
}
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch}

import penstock.Bug
import penstock.devices.WorkerSums
import penstock.wire.Json

/**
 * Does the work of its child, an aggregate per pane with all that is below it, in a Python worker:
 * only the scan of the child is run, and the columns that it reads go to the worker as they are.
 * Back come the keys and aggregation buffers that the child would have made.
 *
 * The child stays in the plan for what Spark reads off it: rows of the scan, and event times, which
 * the worker notes where a watermark node stands. It also says in explain what is done.
 *
 * @param totals what the workers of all its tasks measure
 * @param leftToSpark is given the reason if the child is run after all
 */
private[columnar] final case class ColumnarPanesExec(
    placed: PlacedPipeline,
    program: PythonProgram,
    child: SparkPlan)(
    val totals: WorkerTotals,
    @transient private val leftToSpark: String => Unit)
    extends UnaryExecNode
    with PythonSQLMetrics {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def simpleString(maxFields: Int): String =
    s"ColumnarPanes on ${placed.words}"

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(totals, leftToSpark)

  override protected def doExecute(): RDD[InternalRow] =
    StaticTables.filled(placed.json, child, placed.pipeline.tables) match {
      case Some(description) => inWorkers(description)
      case None =>
        leftToSpark(StaticTables.TooLarge)
        child.execute()
    }

  private def inWorkers(description: String): RDD[InternalRow] = {
    // From the bottom up, as the steps of the pipeline are.
    val eventTimes = child.collect { case node: EventTimeWatermarkExec => node.eventTimeStats }
    val task = new ColumnarPanesTask(
      WorkerCall.of(this, pythonMetrics, program.function(description)),
      placed.pipeline,
      output,
      eventTimes.reverse,
      totals)
    WorkerCall.scanBelow(child).executeColumnar().mapPartitions(task.rowsOf(_))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnarPanesExec =
    copy(child = newChild)(totals, leftToSpark)
}

/** What a task does with the batches of its partition; travels to executors. */
private[columnar] final class ColumnarPanesTask(
    call: WorkerCall,
    pipeline: Pipeline,
    output: Seq[Attribute],
    eventTimes: Seq[EventTimeStatsAccum],
    totals: WorkerTotals)
    extends Serializable {

  /** Keys and buffers of a partition; of one without rows no worker hears. */
  def rowsOf(batches: Iterator[ColumnarBatch]): Iterator[InternalRow] =
    if (!batches.hasNext) Iterator.empty
    else {
      val toUnsafe = UnsafeProjection.create(output, output)
      call.answers(batches, pipeline.input, pipeline.places, "UTC").flatMap(partialsIn).map(toUnsafe)
    }

  /** The rows of an answer. The first one is its report, in a column before all others. */
  private def partialsIn(answer: ColumnarBatch): Iterator[InternalRow] = {
    val struct = answer.column(0).asInstanceOf[ArrowColumnVector]
    val report = Json.readTree(struct.getChild(0).getUTF8String(0).toString)
    noteTimes(report)
    totals.add(WorkerSums.of(report, SparkEnv.get.executorId))
    val columns = output.indices.map(place => struct.getChild(place + 1))
    output.zip(columns).foreach { case (attribute, column) =>
      if (column.dataType != attribute.dataType) {
        throw new Bug(
          "wrong_buffer",
          s"a Python worker answered ${attribute.name} of type ${attribute.dataType} with a " +
            s"column of ${column.dataType}")
      }
    }
    new ColumnarBatch(columns.toArray, answer.numRows()).rowIterator().asScala.drop(1)
  }

  private def noteTimes(report: JsonNode): Unit =
    eventTimes.zip(report.get("event_times").asScala).foreach { case (accumulator, times) =>
      if (!times.isNull) {
        val stats = EventTimeStats(
          max = times.get("max_ms").asLong,
          min = times.get("min_ms").asLong,
          avg = times.get("mean_ms").asDouble,
          count = times.get("count").asLong)
        accumulator.merge(new EventTimeStatsAccum(stats))
      }
    }
}
