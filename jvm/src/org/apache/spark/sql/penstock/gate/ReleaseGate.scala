// Scala because: a node of Spark's physical plan, through which every row of a gated batch
// passes.
package org.apache.spark.sql.penstock.gate

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.V2TableWriteExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.SinkKind

import penstock.commit.jvm.JvmResources
import penstock.query.Gate
import penstock.settings.CommitSettings

/**
 * Puts the gate at the root of a stateful micro-batch whose sink is outside the log and shows what
 * it gets. In Spark's package for its session's Hadoop configuration.
 */
object GateRule extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = {
    val isBatch = plan.exists(_.isInstanceOf[StateStoreWriter])
    if (!isBatch || writesItself(plan) || plan.exists(_.isInstanceOf[ReleaseGateExec])) plan
    else
      Gate.forThisThread match {
        case Some(gate) =>
          val awaitsState = mayBeSkipped(gate.sink)
          ReleaseGateExec(plan, gate.run, gate.batch, gate.beforeFirstRow, awaitsState, limitMs)
        case None => plan
      }
  }

  /**
   * Whether the plan ends in a write of its own, into a sink of Spark's newer interface. A gate
   * around that would come after the write, and there is nothing to gate before it: the offsets of
   * such a batch are durable before it is planned, and it is never skipped when it is run again.
   */
  private def writesItself(plan: SparkPlan): Boolean = plan.isInstanceOf[V2TableWriteExec]

  /**
   * Whether the sink may do nothing about a batch that it has when the batch is run again. Then
   * its state is not computed again either. Spark refuses functions for foreachBatch that do so.
   */
  private def mayBeSkipped(sink: SinkKind): Boolean = sink != SinkKind.ForeachBatch

  private def limitMs: Long =
    CommitSettings.retryMs(key => Option(SQLConf.get.getConfString(key, null)))
}

/**
 * Lets nothing of a batch through to its sink before the offsets of the batch are durable, for a
 * batch that was seen must never be cut anew. A sink that shows rows as they come waits before the
 * first one; one that shows a batch when its job ends, after the last, so that all work is done by
 * then. A sink that may skip the batch when it is run again gets to the end of it only when its
 * state is durable.
 */
private[sql] final case class ReleaseGateExec(
    child: SparkPlan,
    run: String,
    batch: Long,
    beforeFirstRow: Boolean,
    awaitsState: Boolean,
    limitMs: Long)
    extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = {
    Gate.executing(run, batch)
    val pass = new Gated(run, batch, beforeFirstRow, awaitsState, limitMs)
    child.execute().mapPartitionsInternal(pass(_))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ReleaseGateExec =
    copy(child = newChild)
}

/** The gate of one task. */
private final class Gated(
    run: String,
    batch: Long,
    beforeFirstRow: Boolean,
    awaitsState: Boolean,
    limitMs: Long)
    extends Serializable {

  def apply(rows: Iterator[InternalRow]): Iterator[InternalRow] = new Iterator[InternalRow] {
    private var isOpen = false
    private var isOver = false

    override def hasNext: Boolean = {
      if (beforeFirstRow) open()
      val more = rows.hasNext
      if (!more) end()
      more
    }

    private def end(): Unit = if (!isOver) {
      open()
      if (awaitsState) waiting(JvmResources.here.copier.awaitState(run, batch, limitMs))
      isOver = true
    }

    override def next(): InternalRow = rows.next()

    private def open(): Unit = if (!isOpen) {
      waiting(JvmResources.here.copier.await(run, limitMs)(_.released >= batch))
      isOpen = true
    }

    private def waiting(body: => Unit): Unit = JvmResources.here.steps.timed(run, "wait at the gate")(body)
  }
}
