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
import penstock.commit.jvm.JvmResources
import penstock.observe.{SourceTime, TaskStart}
import penstock.prefetch.{AheadOf, AheadRange}
import penstock.settings.Connection

/** Readers of substreams, always columnar: the log's Arrow goes to Spark as it is. */
final class SubstreamReaderFactory(connection: Connection, failOnDataLoss: Boolean)
    extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    new SubstreamReader(
      JvmResources.here.gateways.to(connection),
      partition.asInstanceOf[SubstreamPartition],
      failOnDataLoss)

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("a Penstock substream is read in columns")
}

/**
 * The rows of one substream in a range, page by page; the next page is on its way while Spark
 * works on this one, so at most two pages are in memory, beside those that were read ahead.
 */
private final class SubstreamReader(
    gateway: Gateway,
    partition: SubstreamPartition,
    failOnDataLoss: Boolean)
    extends PartitionReader[ColumnarBatch]
    with Logging {

  private val openedNs = Clock.System.nanos
  private val openNs = TaskStart.sinceNs(openedNs)
  private var endedNs = Option.empty[Long]
  private val allocator = ArrowBridge.allocator(s"penstock-read-${partition.substream}")
  private val readAhead: Seq[AheadRange] =
    if (partition.rows.isDefined) Nil else takeReadAhead(partition.range)
  private val pagesHere: Iterator[Array[Byte]] =
    partition.rows.filter(_.nonEmpty).iterator ++ readAhead.iterator.flatMap(_.pages)
  private var ahead: Option[AskedPage] =
    if (partition.rows.isDefined) None else firstPage(behindReadAhead(partition.range))
  private var page: Option[Page] = None
  private var waitedNs = 0L

  /** Asked for now and then, and for the last time when all is read. */
  override def currentMetricsValues(): Array[CustomTaskMetric] = Array(
    SourceTime.Fetch.of(waitedNs),
    SourceTime.Open.of(openNs),
    SourceTime.Read.of(endedNs.getOrElse(Clock.System.nanos) - openedNs))

  override def next(): Boolean = {
    var loaded = page.exists(_.next())
    while (!loaded && (pagesHere.hasNext || ahead.isDefined)) {
      page.foreach(_.close())
      page =
        if (pagesHere.hasNext) Some(new Page(pagesHere.next(), allocator)) else nextPage(ahead.get)
      loaded = page.exists(_.next())
    }
    if (!loaded && endedNs.isEmpty) endedNs = Some(Clock.System.nanos)
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

  /** What lookahead has read of the range before the batch was cut; it begins at its beginning. */
  private def takeReadAhead(range: ReadRange): Seq[AheadRange] = range.reader.toSeq.flatMap { query =>
    JvmResources.here.aheadPages.take(
      AheadOf(query, range.stream, partition.substream, range.columns), range.after, range.until)
  }

  private def behindReadAhead(range: ReadRange): ReadRange =
    readAhead.lastOption.fold(range)(last => range.copy(after = last.until))

  private def firstPage(range: ReadRange): Option[AskedPage] =
    if (range.after >= range.until) None
    else {
      val path = SubstreamPages.path(range, partition.substream)
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
final class Page(bytes: Array[Byte], allocator: BufferAllocator) {
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

/**
 * What was read of a substream: up to which position, and its pages; none of them if they are more
 * than was asked for.
 */
final case class PagesRead(until: Long, pages: Option[Seq[Array[Byte]]])

/** The pages of a range, all at once: of what is small, as what is read ahead is. */
object SubstreamPages {
  def path(range: ReadRange, substream: Int): String =
    pathBehind(range, substream) + s"&until=${range.until}"

  /**
   * All pages of a range, if they have no more bytes than that together. With `isOpen` the stream
   * may end before the range does: it is read to its end, and if that lies behind the range, it is
   * only said where.
   */
  def read(
      gateway: Gateway,
      range: ReadRange,
      substream: Int,
      isOpen: Boolean,
      bytesMax: Long): PagesRead = {
    val first = get(gateway, if (isOpen) pathBehind(range, substream) else path(range, substream))
    val until = first.headers().firstValue(Gateway.PositionHeader).get.toLong
    val whole = path(range.copy(until = until), substream)
    val pages = Seq.newBuilder[Array[Byte]]
    var bytes = 0L
    var next = Option.when(until <= range.until)(first)
    while (next.isDefined && bytes <= bytesMax) {
      pages += next.get.body()
      bytes += next.get.body().length
      val cursor = next.get.headers().firstValue(Gateway.CursorHeader)
      next = Option.when(cursor.isPresent && bytes <= bytesMax)(get(gateway, s"$whole&cursor=${cursor.get}"))
    }
    PagesRead(until, Option.when(until <= range.until && bytes <= bytesMax)(pages.result()))
  }

  private def get(gateway: Gateway, path: String): HttpResponse[Array[Byte]] =
    gateway.settle(path, gateway.startFetch(path))

  private def pathBehind(range: ReadRange, substream: Int): String =
    s"/streams/${range.stream}/rows?substream=$substream&after=${range.after}" +
      s"&columns=${range.columns}" + range.reader.fold("")(query => s"&query=$query")
}
