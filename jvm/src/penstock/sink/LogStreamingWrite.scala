// Scala because: it implements Spark's StreamingWrite and BatchWrite, called for every batch.
package penstock.sink

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.penstock.RunningQuery

import penstock.Failpoint
import penstock.commit.jvm.JvmResources
import penstock.observe.SinkTimes
import penstock.query.{QueryRuns, TaskLog}
import penstock.wire.{Write => TaskWrite}

/**
 * One micro-batch. `commit` only records which attempts won: the marker follows when Spark writes
 * `commits/N`, whose bytes it carries (see PenstockFileManager).
 */
final class LogStreamingWrite(plan: WritePlan, run: TaskLog, mode: String) extends StreamingWrite {

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory =
    new StreamingWriterFactory(plan)

  /** The winners are the attempts whose results reached the driver; no second vote is needed. */
  override def useCommitCoordinator(): Boolean = false

  override def commit(batch: Long, messages: Array[WriterCommitMessage]): Unit = {
    Failpoint.reach("after_appends", run.query, batch)
    run.seal(batch, Winners.of(messages), mode, RunningQuery.positionsRead(run.query))
    QueryRuns.here.appended(run.query, batch, Winners.times(messages))
  }

  override def abort(batch: Long, messages: Array[WriterCommitMessage]): Unit = ()
}

/** A batch write: the same entries, and one marker at the end. */
final class LogBatchWrite(plan: WritePlan) extends BatchWrite {
  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
    new BatchWriterFactory(plan)

  override def useCommitCoordinator(): Boolean = false

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    JvmResources.here.gateways
      .to(plan.connection)
      .queries
      .mark(plan.query, plan.instance, 0, Winners.of(messages), None, Map.empty, "append")
    ()
  }

  override def abort(messages: Array[WriterCommitMessage]): Unit = ()
}

private object Winners {
  def of(messages: Array[WriterCommitMessage]): Seq[TaskWrite] =
    messages.toSeq.collect { case Appended(writes, _) => writes }.flatten

  def times(messages: Array[WriterCommitMessage]): SinkTimes =
    messages.iterator.collect { case Appended(_, times) => times }.foldLeft(SinkTimes.Zero)(_ plus _)
}

private final class StreamingWriterFactory(plan: WritePlan) extends StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long, batch: Long): DataWriter[InternalRow] =
    new TaskWriter(plan, batch, partition, task)
}

private final class BatchWriterFactory(plan: WritePlan) extends DataWriterFactory {
  override def createWriter(partition: Int, task: Long): DataWriter[InternalRow] =
    new TaskWriter(plan, batch = 0, partition, task)
}
