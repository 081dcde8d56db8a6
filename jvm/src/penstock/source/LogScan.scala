// Scala because: it implements Spark's Scan, and its partitions travel inside tasks.
package penstock.source

import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReaderFactory, Scan}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.penstock.ArrowBridge
import org.apache.spark.sql.types.StructType

import penstock.admission.QueryAdmission
import penstock.client.Gateway
import penstock.commit.jvm.JvmResources
import penstock.observe.SourceTime
import penstock.settings.{Connection, ReadOptions, Start}
import penstock.wire.{InlineRows, StreamInfo}

/** A read of one stream, in batch (all that is visible now) or as a stream. */
final class LogScan(connection: Connection, info: StreamInfo, options: ReadOptions) extends Scan {
  override def readSchema(): StructType = ArrowBridge.sparkSchema(info.schema)

  override def description(): String = s"penstock:${info.name}"

  override def supportedCustomMetrics(): Array[CustomMetric] = SourceTime.all

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    QueryAdmission.starting(options.terms)
    new LogMicroBatchStream(connection, info, options, checkpointLocation)
  }

  override def toBatch: Batch = new Batch {
    private val gateway = JvmResources.here.gateways.to(connection)
    private val start = StartPosition.resolve(gateway, info.name, options.start)
    private val range =
      ReadRange(info.name, start, math.max(start, info.latest), info.schema.getFields.size)

    override def planInputPartitions(): Array[InputPartition] = range.perSubstream(info.substreams)

    override def createReaderFactory(): PartitionReaderFactory =
      new SubstreamReaderFactory(connection, options.failOnDataLoss)
  }
}

/**
 * What a batch reads of a stream: everything committed in `(after, until]`, of the first columns,
 * which are those that the stream had when the query was started. `reader` is the query it is for.
 */
final case class ReadRange(
    stream: String,
    after: Long,
    until: Long,
    columns: Int,
    reader: Option[String] = None) {
  def perSubstream(substreams: Int, rows: Option[InlineRows] = None): Array[InputPartition] =
    Array.tabulate(substreams) { k =>
      SubstreamPartition(this, k, rows.map(_.pages.getOrElse(k, SubstreamPartition.NoRows)))
    }
}

/** One substream of a range: a Spark partition. `rows`: all of it as Arrow, if it is here. */
final case class SubstreamPartition(range: ReadRange, substream: Int, rows: Option[Array[Byte]])
    extends InputPartition

object SubstreamPartition {
  val NoRows: Array[Byte] = Array.emptyByteArray
}

object StartPosition {
  def resolve(gateway: Gateway, stream: String, start: Start): Long = start match {
    case Start.Earliest => gateway.streams.position(stream, "at=earliest")
    case Start.Latest => gateway.streams.position(stream, "at=latest")
    case Start.Time(epochMs) => gateway.streams.position(stream, s"time_ms=$epochMs")
    case Start.At(position) => position
  }
}
