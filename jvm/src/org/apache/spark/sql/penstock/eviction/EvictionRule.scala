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
import org.apache.spark.sql.execution.streaming.state.StateKeeper
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.{PlanAttempt, RunningQuery, SparkMembers}

import penstock.commit.jvm.JvmResources
import penstock.eviction.{ScanCounts, ScanNames}
import penstock.settings.{ChoiceKey, Keys}

/**
 * Puts a node above each operator that evicts by a watermark. It tells the operator's tasks which
 * scans of state they are going to make for it, so that a store skips those that would remove
 * nothing, and has generated code refer to the watermark. Plans are otherwise as they were.
 */
object EvictionRule extends Rule[SparkPlan] {
  private[eviction] val WatermarkName = "watermark"
  private val RuleName = "eviction"

  /** Of a note that is about no operator in particular. */
  private val NoOperator = 0L

  /** What cannot be planned because something fails is Spark's, as it is without this rule. */
  override def apply(plan: SparkPlan): SparkPlan = PlanAttempt.of {
    if (!plan.exists(_.isInstanceOf[StateStoreWriter]) || isDone(plan)) plan
    else plan.transformUp { case operator: StateStoreWriter => tried(operator) }
  } { reason =>
    say(RuleName, NoOperator, leftToSpark(reason))
    plan
  }

  private def isDone(plan: SparkPlan): Boolean = plan.exists(_.isInstanceOf[EvictionScansExec])

  private def tried(operator: StateStoreWriter): SparkPlan = PlanAttempt.of(planned(operator)) { reason =>
    say(RuleName, operator.stateInfo.fold(NoOperator)(_.operatorId), leftToSpark(reason))
    operator
  }

  private def planned(operator: StateStoreWriter): SparkPlan = operator.stateInfo match {
    case Some(state) =>
      val scans = if (isAsked) declared(operator, state.operatorId) else Nil
      val isReferenced = isWatermarkReferenced && isCodeKnown(operator, state.operatorId)
      if (scans.isEmpty && !isReferenced) operator
      else
        EvictionScansExec(
          operator,
          scans,
          OperatorFolder(state.checkpointLocation, state.operatorId),
          isReferenced)
    case None => operator
  }

  /** Whether code of the operator can refer to the watermark; if not, that is said. */
  private def isCodeKnown(operator: StateStoreWriter, id: Long): Boolean = {
    val note = WatermarkCode.noteOfUnknown(operator)
    note.foreach(say(WatermarkName, id, _))
    note.isEmpty
  }

  /** The scans that stores may skip, and what is said about them. */
  private def declared(operator: StateStoreWriter, id: Long): Seq[OperatorScan] = {
    val scans = for {
      known <- OperatorScans.of(operator).toRight(s"this rule does not know how ${operator.nodeName} evicts")
      _ <- if (known.isEmpty) Right(()) else reasonAgainstStores.toLeft(())
    } yield known
    say(RuleName, id, scans match {
      case Left(reason) => leftToSpark(reason)
      case Right(Nil) => "it evicts nothing"
      case Right(known) => s"scans for eviction per partition: ${known.size}, skipped where no row has expired"
    })
    scans.getOrElse(Nil)
  }

  private def reasonAgainstStores: Option[String] =
    StateKeeper.reasonAgainstOurs.orElse(SparkMembers.NativeStore.lack)

  private[eviction] def leftToSpark(reason: String): String = s"left to Spark: $reason"

  /** A plan that is made for its explanation only belongs to no run, and nothing is kept of it. */
  private[eviction] def say(rule: String, operator: Long, text: String): Unit = for {
    (_, run) <- RunningQuery.streamThread
    batch <- RunningQuery.batchOfThisThread
  } JvmResources.here.planNotes.say(run, batch, rule, operator, text)

  private def isAsked: Boolean = set(Keys.Eviction) == Keys.SkipEviction

  private def isWatermarkReferenced: Boolean = set(Keys.BatchWatermark) == Keys.WatermarkByReference

  private def set(key: ChoiceKey): String =
    key.value(name => Option(SQLConf.get.getConfString(name, null)))
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
    // What fails leaves the watermark in the code, as Spark has it.
    if (isWatermarkReferenced) {
      val note = PlanAttempt.of(WatermarkCode.refer(child))(EvictionRule.leftToSpark)
      EvictionRule.say(EvictionRule.WatermarkName, folder.operator, note)
    }
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
