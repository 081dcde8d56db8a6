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
import org.apache.spark.sql.execution.streaming.operators.stateful.{BaseStreamingDeduplicateExec, StateStoreSaveExec, StateStoreWriter}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.state.PenstockStateStoreProvider
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.RunningQuery

import penstock.commit.jvm.JvmResources
import penstock.eviction.{ScanCounts, ScanNames}
import penstock.settings.{ChoiceKey, Keys}

/**
 * Puts a node above each operator that evicts by a watermark. It tells the operator's tasks which
 * scans of state they are going to make for it, so that a store skips those that would remove
 * nothing, and has generated code refer to the watermark. Plans are otherwise as they were.
 */
object EvictionRule extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!plan.exists(_.isInstanceOf[StateStoreWriter]) || isDone(plan)) plan
    else plan.transformUp { case operator: StateStoreWriter => planned(operator) }

  private def isDone(plan: SparkPlan): Boolean = plan.exists(_.isInstanceOf[EvictionScansExec])

  private def planned(operator: StateStoreWriter): SparkPlan = operator.stateInfo match {
    case Some(state) if isKnown(operator) =>
      val scans = if (isSkipped) OperatorScans.of(operator) else Some(Nil)
      if (isSkipped) note(state.operatorId, scans)
      if (scans.forall(_.isEmpty) && !isWatermarkReferenced) operator
      else
        EvictionScansExec(
          operator,
          scans.getOrElse(Nil),
          OperatorFolder(state.checkpointLocation, state.operatorId),
          isWatermarkReferenced)
    case _ => operator
  }

  private def isKnown(operator: StateStoreWriter): Boolean = operator match {
    case _: StateStoreSaveExec | _: BaseStreamingDeduplicateExec | _: StreamingSymmetricHashJoinExec =>
      true
    case _ => false
  }

  private def note(operator: Long, scans: Option[Seq[OperatorScan]]): Unit = for {
    (_, run) <- RunningQuery.streamThread
    batch <- RunningQuery.batchOfThisThread
  } {
    val text = scans match {
      case None => "left to Spark: it evicts in a way that this rule does not know"
      case Some(Nil) => "it evicts nothing"
      case Some(known) => s"scans for eviction per partition: ${known.size}, skipped where no row has expired"
    }
    JvmResources.here.planNotes.say(run, batch, "eviction", operator, text)
  }

  /** The rows of our stores are read as Spark's binary rows, which they are in no other encoding. */
  private def isSkipped: Boolean =
    set(Keys.Eviction) == Keys.SkipEviction &&
      SQLConf.get.stateStoreProviderClass == classOf[PenstockStateStoreProvider].getName &&
      SQLConf.get.stateStoreEncodingFormat == BinaryRows

  private def isWatermarkReferenced: Boolean = set(Keys.BatchWatermark) == Keys.WatermarkByReference

  private def set(key: ChoiceKey): String =
    key.value(name => Option(SQLConf.get.getConfString(name, null)))

  private val BinaryRows = "unsaferow"
}

/**
 * An operator whose scans for eviction are known to the stores of its tasks.
 *
 * @param isWatermarkReferenced whether generated code refers to the watermark instead of containing it
 */
private[sql] final case class EvictionScansExec(
    child: SparkPlan,
    scans: Seq[OperatorScan],
    folder: OperatorFolder,
    isWatermarkReferenced: Boolean)
    extends UnaryExecNode {

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "scansSkipped" -> SQLMetrics.createMetric(sparkContext, ScanNames.Skipped),
    "scansMade" -> SQLMetrics.createMetric(sparkContext, ScanNames.Made))

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = {
    if (isWatermarkReferenced) WatermarkCode.refer(child)
    val counts = new CountedScans(longMetric("scansSkipped"), longMetric("scansMade"))
    new DeclaredScansRDD(child.execute(), scans, folder, counts)
  }

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
    JvmResources.here.evictionScans.declare(context, scans.map(_.in(folder, split.index)), counts)
    firstParent[InternalRow].iterator(split, context)
  }
}

private final class CountedScans(skips: SQLMetric, scans: SQLMetric)
    extends ScanCounts
    with Serializable {
  override def skipped(): Unit = skips += 1

  override def made(): Unit = scans += 1
}
