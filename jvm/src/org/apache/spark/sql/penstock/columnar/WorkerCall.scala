// Scala because: a task of Spark hands Arrow columns to Spark's own Python workers.
package org.apache.spark.sql.penstock.columnar

import org.apache.spark.{JobArtifactSet, TaskContext}
import org.apache.spark.api.python.ChainedPythonFunctions
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.python.{ArrowPythonRunner, ColumnarPipelineRunner}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** The call of a Python function with the columns of a partition; travels to executors. */
private[columnar] final class WorkerCall private (
    function: ChainedPythonFunctions,
    settings: Map[String, String],
    metrics: Map[String, SQLMetric],
    jobArtifactUUID: Option[String])
    extends Serializable {

  /**
   * The answers of the worker to the batches of the running task.
   *
   * @param input the schema that the function is given
   * @param places of its columns in a batch
   */
  def answers(
      batches: Iterator[ColumnarBatch],
      input: StructType,
      places: Seq[Int],
      timeZone: String): Iterator[ColumnarBatch] = {
    val context = TaskContext.get()
    val runner = new ColumnarPipelineRunner(
      function, input, places.toArray, timeZone, settings, metrics, jobArtifactUUID)
    runner.compute(batches, context.partitionId(), context)
  }
}

private[columnar] object WorkerCall {

  /** The call that a node of the plan makes, with its session's settings and its own metrics. */
  def of(
      node: SparkPlan,
      metrics: Map[String, SQLMetric],
      function: ChainedPythonFunctions): WorkerCall =
    new WorkerCall(
      function,
      ArrowPythonRunner.getPythonRunnerConfMap(node.conf),
      metrics,
      JobArtifactSet.getCurrentJobArtifactState.map(_.uuid))

  /** The scan of the log below a node: the only part of its plan that is run. */
  def scanBelow(node: SparkPlan): MicroBatchScanExec =
    node.collectFirst { case scan: MicroBatchScanExec => scan }.get
}
