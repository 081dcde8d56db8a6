// Scala because: a rule of Spark's planner and a node of its physical plan.
package org.apache.spark.sql.penstock.eviction

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.state.PenstockStateStoreProvider
import org.apache.spark.sql.internal.SQLConf

import penstock.eviction.{ScanCounts, ScanNames, TaskScans}
import penstock.settings.Keys

/**
 * Tells the tasks of operators that evict by a watermark which scans of state they are going to make
 * for it, so that a store that knows better spares them. Plans are otherwise as they were.
 */
object EvictionRule extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!plan.exists(_.isInstanceOf[StateStoreWriter]) || !isOn || isDone(plan)) plan
    else
      plan.transformUp { case operator: StateStoreWriter =>
        val scans = OperatorScans.of(operator)
        (scans.filter(_.nonEmpty), operator.stateInfo) match {
          case (Some(known), Some(state)) =>
            EvictionScansExec(operator, known, OperatorFolder(state.checkpointLocation, state.operatorId))
          case _ => operator
        }
      }

  private def isDone(plan: SparkPlan): Boolean = plan.exists(_.isInstanceOf[EvictionScansExec])

  /** The rows of our stores are read as Spark's binary rows, which they are in no other encoding. */
  private def isOn: Boolean = {
    val conf = SQLConf.get
    Keys.Eviction.value(key => Option(conf.getConfString(key, null))) == Keys.SkipEviction &&
    conf.stateStoreProviderClass == classOf[PenstockStateStoreProvider].getName &&
    conf.stateStoreEncodingFormat == BinaryRows
  }

  private val BinaryRows = "unsaferow"
}

/** An operator whose scans for eviction are known to the stores of its tasks. */
private[sql] final case class EvictionScansExec(
    child: SparkPlan,
    scans: Seq[OperatorScan],
    folder: OperatorFolder)
    extends UnaryExecNode {

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "scansSkipped" -> SQLMetrics.createMetric(sparkContext, ScanNames.Skipped),
    "scansMade" -> SQLMetrics.createMetric(sparkContext, ScanNames.Made))

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = new DeclaredScansRDD(
    child.execute(), scans, folder, new CountedScans(longMetric("scansSkipped"), longMetric("scansMade")))

  override protected def withNewChildInternal(newChild: SparkPlan): EvictionScansExec =
    copy(child = newChild)
}

/** Declares scans before the operator's own RDD opens the stores. */
private final class DeclaredScansRDD(
    rows: RDD[InternalRow],
    scans: Seq[OperatorScan],
    folder: OperatorFolder,
    counts: ScanCounts)
    extends RDD[InternalRow](rows) {

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    TaskScans.declare(context, scans.map(_.in(folder, split.index)), counts)
    firstParent[InternalRow].iterator(split, context)
  }
}

private final class CountedScans(skips: SQLMetric, scans: SQLMetric)
    extends ScanCounts
    with Serializable {
  override def skipped(): Unit = skips += 1

  override def made(): Unit = scans += 1
}
