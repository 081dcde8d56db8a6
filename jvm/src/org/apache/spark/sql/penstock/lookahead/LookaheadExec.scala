// Scala because: a node of Spark's physical plan, through which every row of a batch passes.
package org.apache.spark.sql.penstock.lookahead

import java.util.ArrayDeque

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}

/**
 * Hands on the rows of its child as they are, and hints the state keys that they will be looked up
 * by.
 *
 * @param used columns that the keys are computed from
 * @param isFused whether it takes part in generated code; where rows exist as such anyway, it does
 *   not
 * @param windowRows how many rows it reads ahead of what it hands on, where the operator would
 *   otherwise look up each row as it comes
 */
private[sql] final case class LookaheadExec(
    child: SparkPlan,
    source: HintSource,
    used: Seq[Attribute],
    isFused: Boolean,
    windowRows: Int)
    extends UnaryExecNode
    with CodegenSupport {

  /** In one word: names of variables in generated code begin with it. */
  override def nodeName: String = s"Lookahead${source.candidate}"

  override protected def stringArgs: Iterator[Any] = Iterator(
    if (source.keys.isEmpty) "takes times" else s"hints operator ${source.location.operator}")

  override def output: Seq[Attribute] = child.output

  /**
   * Equal to its child where Spark looks for a shuffle that it can use a second time: a plan that
   * has one twice keeps that, with the hints of one of them.
   */
  override protected def doCanonicalize(): SparkPlan = child.canonicalized

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = {
    val (hinted, window) = (source, windowRows)
    child.execute().mapPartitionsWithIndexInternal { (partition, rows) =>
      val hints = hinted.open(partition)
      if (window > 0) new Window(rows, hints, window) else new Passed(rows, hints)
    }
  }

  override def supportCodegen: Boolean = isFused

  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()

  /** Evaluated before the code of this node, which is a block: what is declared there is lost after it. */
  override def usedInputs: AttributeSet = AttributeSet(used)

  private var hintsTerm: String = _

  override protected def doProduce(ctx: CodegenContext): String = {
    val opened = ctx.addReferenceObj("hintSource", source)
    hintsTerm = ctx.addMutableState(
      classOf[TaskHints].getName, "hints", term => s"$term = $opened.open(partitionIndex);",
      forceInline = true)
    // Reached when the rows are over, and before an aggregate that took them all is read.
    s"""${child.asInstanceOf[CodegenSupport].produce(ctx, this)}
       |$hintsTerm.end();""".stripMargin
  }

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String =
    s"""${new FusedHints(ctx, input, source, hintsTerm).code}
       |${consume(ctx, input)}""".stripMargin

  override protected def withNewChildInternal(newChild: SparkPlan): LookaheadExec = copy(child = newChild)
}

/** Rows as they come. */
private final class Passed(rows: Iterator[InternalRow], hints: TaskHints) extends Iterator[InternalRow] {
  override def hasNext: Boolean = {
    val isMore = rows.hasNext
    if (!isMore) hints.end()
    isMore
  }

  override def next(): InternalRow = {
    val row = rows.next()
    hints.row(row)
    row
  }
}

/**
 * Rows that are read ahead, so that their state is on its way when they are handed on. Half of them
 * are still to come when more are read: fetching never waits for the rows, nor they for it.
 */
private final class Window(rows: Iterator[InternalRow], hints: TaskHints, size: Int)
    extends Iterator[InternalRow] {

  private val ahead = new ArrayDeque[InternalRow](size)

  override def hasNext: Boolean = {
    if (ahead.size <= size / 2) fill()
    !ahead.isEmpty
  }

  override def next(): InternalRow = {
    if (ahead.isEmpty) fill()
    ahead.remove()
  }

  private def fill(): Unit = {
    var isMore = rows.hasNext
    while (isMore && ahead.size < size) {
      val row = rows.next().copy()
      hints.row(row)
      ahead.add(row)
      isMore = rows.hasNext
    }
    if (isMore) hints.flush() else hints.end()
  }
}
