// Scala because: it implements Spark's PartitionReader, and hands every row to a task.
package penstock.source

import java.io.ByteArrayInputStream
import java.net.http.HttpResponse
import java.util.concurrent.CompletableFuture

import scala.jdk.CollectionConverters._

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector.ipc.ArrowStreamReader
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.penstock.ArrowBridge
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch, ColumnVector}

import penstock.{BadCall, Clock}
import penstock.client.Gateway
import penstock.observe.FetchTime
import penstock.settings.Connection

/** Readers of substreams, always columnar: the log's Arrow goes to Spark as it is. */
final class SubstreamReaderFactory(connection: Connection, failOnDataLoss: Boolean)
    extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    new SubstreamReader(
      Gateway.to(connection),
      partition.asInstanceOf[SubstreamPartition],
      failOnDataLoss)

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("a Penstock substream is read in columns")
}

/**
 * The rows of one substream in a range, page by page; the next page is on its way while Spark
 * works on this one, so at most two pages are in memory.
 */
private final class SubstreamReader(
    gateway: Gateway,
    partition: SubstreamPartition,
    failOnDataLoss: Boolean)
    extends PartitionReader[ColumnarBatch]
    with Logging {

  private val allocator = ArrowBridge.allocator(s"penstock-read-${partition.substream}")
  private var ahead: Option[AskedPage] =
    if (partition.rows.isDefined) None else firstPage(partition.range)
  private var page: Option[Page] =
    partition.rows.filter(_.nonEmpty).map(new Page(_, allocator))
  private var waitedNs = 0L

  override def currentMetricsValues(): Array[CustomTaskMetric] =
    Array(FetchTime.Waited(waitedNs))

  override def next(): Boolean = {
    var loaded = page.exists(_.next())
    while (!loaded && ahead.isDefined) {
      page.foreach(_.close())
      page = nextPage(ahead.get)
      loaded = page.exists(_.next())
    }
    loaded
  }

  override def get(): ColumnarBatch = page.get.batch

  override def close(): Unit = {
    page.foreach(_.close())
    page = None
    ahead.foreach(_.answer.cancel(true))
    ahead = None
    allocator.close()
  }

  private def firstPage(range: ReadRange): Option[AskedPage] =
    if (range.after >= range.until) None
    else {
      val path = s"/streams/${range.stream}/rows?substream=${partition.substream}" +
        s"&after=${range.after}&until=${range.until}&columns=${range.columns}" +
        range.reader.fold("")(query => s"&query=$query")
      Some(AskedPage(range, path, path, gateway.startFetch(path)))
    }

  /** Waits for a page, and asks for the one after it before anyone reads this one. */
  private def nextPage(asked: AskedPage): Option[Page] =
    try {
      val start = Clock.System.nanos
      val answer = gateway.settle(asked.path, asked.answer)
      waitedNs += Clock.System.nanos - start
      val cursor = answer.headers().firstValue(Gateway.CursorHeader)
      ahead =
        if (cursor.isPresent) {
          val path = s"${asked.base}&cursor=${cursor.get}"
          Some(asked.copy(path = path, answer = gateway.startFetch(path)))
        } else None
      Some(new Page(answer.body(), allocator))
    } catch {
      case e: BadCall if DataLoss.Codes(e.code) =>
        ahead = firstPage(withoutLostRows(asked.range, e))
        None
    }

  private def withoutLostRows(range: ReadRange, e: BadCall): ReadRange = {
    if (failOnDataLoss) throw DataLoss.named(e)
    val left =
      if (e.code == "unknown_stream") range.copy(until = range.after)
      else {
        val now = gateway.streams.describe(range.stream, range.reader)
        range.copy(
          after = math.max(range.after, now.earliest),
          until = math.min(range.until, now.latest))
      }
    if (left == range) throw DataLoss.named(e)
    logWarning(
      s"rows of stream '${range.stream}' in (${range.after}, ${range.until}] are gone; " +
        s"failOnDataLoss is false, so (${left.after}, ${left.until}] is read")
    left
  }
}

/** A page that was asked for: its range, the question for the first page, and this one's. */
private final case class AskedPage(
    range: ReadRange,
    base: String,
    path: String,
    answer: CompletableFuture[HttpResponse[Array[Byte]]])

/** One answer of the server: an Arrow stream, and the columnar batch its record batches fill. */
private final class Page(bytes: Array[Byte], allocator: BufferAllocator) {
  private val reader = new ArrowStreamReader(new ByteArrayInputStream(bytes), allocator)
  private val root = reader.getVectorSchemaRoot
  val batch: ColumnarBatch = new ColumnarBatch(
    root.getFieldVectors.asScala.map(v => new ArrowColumnVector(v): ColumnVector).toArray)

  def next(): Boolean = {
    val loaded = reader.loadNextBatch()
    if (loaded) batch.setNumRows(root.getRowCount)
    loaded
  }

  def close(): Unit = {
    batch.close()
    reader.close()
  }
}
