// Scala because: it implements Spark's WriteBuilder, from which each query makes its sink.
package penstock.sink

import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.penstock.{ArrowBridge, StreamThread}
import org.apache.spark.sql.types.{StructField, StructType}

import penstock.BadCall
import penstock.client.Gateway
import penstock.commit.jvm.JvmResources
import penstock.query.QueryRuns
import penstock.settings.{ByColumn, Connection, Keys, Mode, OneStream, Options, Streams}
import penstock.wire.StreamInfo

/**
 * A write to one stream, or to several, in any output mode. The log keeps every row a query emits:
 * in update mode a later row of a key replaces the earlier one, in complete mode a later marker all
 * before it; the marker says which mode it was, and makes the batch visible in all its streams.
 */
final class LogWriteBuilder(connection: Connection, streams: Streams, info: LogicalWriteInfo)
    extends SupportsTruncate
    with SupportsStreamingUpdateAsAppend {

  private var complete = false

  override def truncate(): WriteBuilder = {
    complete = true
    this
  }

  override def build(): Write = new Write {
    override def description(): String = s"penstock:$streams"

    override def toStreaming: StreamingWrite = {
      val run = QueryRuns.here.logOf(info.queryId())
      val targets = rowsOf.map { case (stream, rows) =>
        target(rows, run.stream(stream)(ensure(stream, rows)))
      }
      val mode = if (complete) "complete" else "append"
      new LogStreamingWrite(plan(targets, run.instance, isEarly), run, mode)
    }

    override def toBatch: BatchWrite = {
      val targets = rowsOf.map { case (stream, rows) => target(rows, ensure(stream, rows)) }
      // A batch write is a query of its own with one batch: the same marker makes it visible.
      val instance = gateway.queries.takeOver(info.queryId(), info.queryId(), None).instance
      new LogBatchWrite(plan(targets, instance, isEarly = false))
    }
  }

  /** Each stream with the columns of its rows. */
  private def rowsOf: Seq[(String, StructType)] = streams match {
    case OneStream(name) => Seq(name -> info.schema())
    case ByColumn(names) =>
      if (info.schema().fieldNames.toSeq != names) throw notTheColumns(names)
      info.schema().fields.toSeq.map {
        case StructField(name, rows: StructType, _, _) => name -> rows
        case _ => throw notTheColumns(names)
      }
  }

  private def notTheColumns(names: Seq[String]) = new BadCall(
    "rows_do_not_fit",
    s"a query with outputs ${names.mkString(", ")} has one struct column for each of them, in " +
      s"this order, and this one has ${info.schema().toDDL}; penstock.Outputs makes them")

  private def gateway: Gateway = JvmResources.here.gateways.to(connection)

  private def ensure(stream: String, rows: StructType): StreamInfo = {
    val options = Options.write(info.options(), Option.unless(streams.isOne)(stream))
    gateway.streams.ensure(stream, ArrowBridge.arrowSchema(rows), options.substreams, options.key)
  }

  private def target(rows: StructType, stream: StreamInfo): Target =
    Target(stream.name, stream.substreams, stream.key, rows)

  private def plan(targets: Seq[Target], instance: Long, isEarly: Boolean): WritePlan =
    WritePlan(connection, targets, !streams.isOne, info.queryId(), instance, isEarly)

  /** Only where the release queue marks, which knows what to do when an early answer was lost. */
  private def isEarly: Boolean = Keys.CommitEarlyAnswers.value(StreamThread.setting) &&
    QueryRuns.here.ofQuery(info.queryId()).exists(_.mode == Mode.Full)
}
