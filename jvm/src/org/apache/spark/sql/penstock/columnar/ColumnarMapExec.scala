// Scala because: it is a node of Spark's physical plan in the place of one that takes rows only.
package org.apache.spark.sql.penstock.columnar

import scala.jdk.CollectionConverters._

import org.apache.spark.api.python.ChainedPythonFunctions
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, PythonUDF, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{ProjectExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.python.{MapInArrowExec, PythonSQLMetrics}
import org.apache.spark.sql.penstock.LogSource
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch}

/**
 * A user's `mapInArrow` directly over a stream of the log: the function gets the columns as they came
 * from the server, in record batches of the log's own sizes, and no row is made of them.
 */
private[columnar] final case class ColumnarMapExec(
    udf: PythonUDF,
    output: Seq[Attribute],
    child: SparkPlan)
    extends UnaryExecNode
    with PythonSQLMetrics {

  override def producedAttributes: AttributeSet = AttributeSet(output)

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override protected def doExecute(): RDD[InternalRow] = {
    val scan = WorkerCall.scanBelow(child)
    val task = new ColumnarMapTask(
      WorkerCall.of(this, pythonMetrics, ChainedPythonFunctions(Seq(udf.func))),
      child.schema,
      child.output.map(column => scan.output.indexWhere(_.exprId == column.exprId)),
      output,
      conf.sessionLocalTimeZone)
    scan.executeColumnar().mapPartitions(task.rowsOf(_))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnarMapExec =
    copy(child = newChild)
}

private[columnar] object ColumnarMapExec {

  /** The node for a `mapInArrow`, if it stands on a stream of the log and asks for nothing special. */
  def of(map: MapInArrowExec): Option[ColumnarMapExec] = map.func match {
    case udf: PythonUDF if isPlain(map) && isOverLog(map.child) =>
      Some(ColumnarMapExec(udf, map.output, map.child))
    case _ => None
  }

  private def isPlain(map: MapInArrowExec): Boolean =
    !map.isBarrier && map.profile.isEmpty && !map.conf.arrowUseLargeVarTypes &&
      !map.conf.pysparkArrowValidateSchema

  private def isOverLog(plan: SparkPlan): Boolean = plan match {
    case project: ProjectExec =>
      project.projectList.forall(_.isInstanceOf[Attribute]) && isOverLog(project.child)
    case scan: MicroBatchScanExec =>
      scan.stream.isInstanceOf[LogSource] && scan.supportsColumnar && scan.output.forall(isTaken)
    case _ => false
  }

  private def isTaken(column: Attribute): Boolean =
    try ExpressionTranslation.typeName(column.dataType).nonEmpty
    catch { case _: NotTaken => false }
}

/** What a task does with the batches of its partition; travels to executors. */
private[columnar] final class ColumnarMapTask(
    call: WorkerCall,
    input: StructType,
    places: Seq[Int],
    output: Seq[Attribute],
    timeZone: String)
    extends Serializable {

  def rowsOf(batches: Iterator[ColumnarBatch]): Iterator[InternalRow] = {
    val toUnsafe = UnsafeProjection.create(output, output)
    call.answers(batches, input, places, timeZone).flatMap(rowsIn).map(toUnsafe)
  }

  private def rowsIn(answer: ColumnarBatch): Iterator[InternalRow] = {
    val struct = answer.column(0).asInstanceOf[ArrowColumnVector]
    val columns = output.indices.map(place => struct.getChild(place))
    new ColumnarBatch(columns.toArray, answer.numRows()).rowIterator().asScala
  }
}
