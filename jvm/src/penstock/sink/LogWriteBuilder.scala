package penstock.sink

import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.penstock.SparkInternals

import penstock.{Connection, Options}
import penstock.checkpoint.QueryRuns
import penstock.client.{Gateway, StreamInfo}

/**
 * A write to one stream in any output mode. The log keeps every row a query emits: in update mode
 * a later row of a key replaces the earlier one, in complete mode a later marker all before it;
 * the marker says which mode it was.
 */
final class LogWriteBuilder(connection: Connection, stream: String, info: LogicalWriteInfo)
    extends SupportsTruncate
    with SupportsStreamingUpdateAsAppend {

  private var complete = false

  override def truncate(): WriteBuilder = {
    complete = true
    this
  }

  override def build(): Write = new Write {
    override def description(): String = s"penstock:$stream"

    override def toStreaming: StreamingWrite = {
      val run = QueryRuns.logOf(info.queryId())
      val target = run.stream(stream)(ensureStream())
      new LogStreamingWrite(plan(target, run.instance), run, if (complete) "complete" else "append")
    }

    override def toBatch: BatchWrite = {
      // A batch write is a query of its own with one batch: the same marker makes it visible.
      val instance =
        Gateway.to(connection).queries.takeOver(info.queryId(), info.queryId(), None).instance
      new LogBatchWrite(plan(ensureStream(), instance))
    }
  }

  private def ensureStream(): StreamInfo = {
    val options = Options.write(info.options())
    Gateway
      .to(connection)
      .streams
      .ensure(stream, SparkInternals.arrowSchema(info.schema()), options.substreams, options.key)
  }

  private def plan(target: StreamInfo, instance: Long): WritePlan = WritePlan(
    connection,
    stream,
    target.substreams,
    target.key,
    info.schema(),
    info.queryId(),
    instance)
}
