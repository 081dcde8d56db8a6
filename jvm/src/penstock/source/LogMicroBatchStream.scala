// Scala because: it implements Spark's MicroBatchStream, asked for every batch.
package penstock.source

import java.util.{Map => JMap, Optional}

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.penstock.{LogSource, RunningQuery, StreamThread}

import penstock.BadCall
import penstock.admission.{Admitted, AdmittedSource}
import penstock.commit.jvm.JvmResources
import penstock.query.QueryRuns
import penstock.settings.{Connection, Keys, ReadOptions, StatedTerms}
import penstock.wire._

/**
 * A stream of the log as a Spark streaming source. The server decides how far a batch reads; this
 * class carries the question and the answer.
 */
final class LogMicroBatchStream(
    override val connection: Connection,
    info: StreamInfo,
    options: ReadOptions,
    checkpointLocation: String)
    extends MicroBatchStream
    with LogSource
    with SupportsTriggerAvailableNow
    with ReportsSourceMetrics
    with AdmittedSource
    with Logging {

  private val gateway = JvmResources.here.gateways.to(connection)
  private val polling = new Polling(this, clock)
  private var availableNowEnd: Option[Long] = None
  private var latestSeen: Option[Position] = None
  private var cut: Option[CutBatch] = None

  /** How many there are now: there may be more than when the query was started. */
  private var substreams = info.substreams

  private lazy val start: Position = StartFile.readOrWrite(checkpointLocation) {
    Position(info.name, StartPosition.resolve(gateway, info.name, options.start))
  }

  def streamName: String = info.name

  private[source] def pollingState: Polling.State = polling.state

  override def initialOffset(): Offset = start

  override def deserializeOffset(json: String): Offset = {
    val position = Position.parse(json)
    if (position.stream != info.name) {
      throw new BadCall(
        "stream_differs",
        s"the checkpoint was made reading stream '${position.stream}', this query reads " +
          s"'${info.name}'; use a new checkpoint location for another stream")
    }
    position
  }

  override def positionIn(offset: Offset): (String, Long) = {
    val position = Position.parse(offset.json())
    (position.stream, position.lsn)
  }

  override def getDefaultReadLimit: ReadLimit =
    (options.rowsMax.map(ReadLimit.maxRows) ++ options.bytesMax.map(ReadLimit.maxBytes)).toArray match {
      case Array() => ReadLimit.allAvailable()
      case Array(limit) => limit
      case several => ReadLimit.compositeLimit(several)
    }

  override def prepareForTriggerAvailableNow(): Unit =
    availableNowEnd = Some(gateway.streams.describe(info.name, reader).latest)

  /** Which of the query's sources over this stream it is: each of them reads on its own. */
  private lazy val numberAmongSources: Int = {
    val sources = reader.toSeq.flatMap(RunningQuery.sourcesOf(_)).distinct
    val overThisStream = sources.collect { case s: LogMicroBatchStream if s.streamName == info.name => s }
    math.max(0, overThisStream.indexOf(this))
  }

  /** The query that reads; known from its thread, before its run has begun. */
  private def reader: Option[String] = RunningQuery.streamThread.map(_._1)

  override def latestOffset(): Offset =
    throw new UnsupportedOperationException("latestOffset(start, limit) is the one to call")

  override def statedTerms: StatedTerms = options.terms

  override def lookFrom(from: Option[Offset]): BatchInput = {
    val after = lsnOf(from.getOrElse(start))
    val limit = getDefaultReadLimit
    val until = availableNowEnd.map(math.max(_, after))
    LogInput(info.name, after, numberAmongSources, rowsMax(limit), bytesMax(limit), until, inline)
  }

  /** Of a small batch the rows come with the answer, and travel in the tasks that read them. */
  private lazy val inline: InlineRequest =
    InlineRequest(Keys.InlineBytes.value(StreamThread.setting), columns)

  private def columns: Int = info.schema.getFields.size

  /** Where the batch ends; null, which says nothing, while admission withholds what is there. */
  override def latestOffset(start: Offset, limit: ReadLimit): Offset = admitted() match {
    case Some(Admitted(isCut, Share.LogEnd(admission))) =>
      saw(start, admission)
      if (isCut) Position(info.name, admission.end) else null
    case Some(_) => null
    case None => askAlone(start, limit)
  }

  override def metrics(latestConsumed: Optional[Offset]): JMap[String, String] =
    admissionMetrics().asJava

  private def saw(start: Offset, admission: Admission): Unit = {
    latestSeen = Some(Position(info.name, admission.latest))
    substreams = math.max(substreams, admission.substreams)
    cut = admission.rows.map(CutBatch(lsnOf(start), admission.end, _))
  }

  /** The position in an offset, which is Spark's own form of it after a restart. */
  private def lsnOf(offset: Offset): Long = offset match {
    case position: Position => position.lsn
    case recorded => positionIn(recorded)._2
  }

  /** As a source of a query without terms does. */
  private def askAlone(start: Offset, limit: ReadLimit): Offset = {
    val after = start.asInstanceOf[Position].lsn
    val run = QueryRuns.here.logOfThisThread
    val others = if (availableNowEnd.isEmpty) polling.othersToHoldFor(run, after) else None
    val ask = AdmissionRequest(
      query = run.map(_.query),
      instance = run.map(_.instance),
      stream = info.name,
      source = numberAmongSources,
      after = after,
      rowsMax = rowsMax(limit),
      bytesMax = bytesMax(limit),
      until = availableNowEnd.map(end => math.max(end, after)),
      others = others.getOrElse(Nil),
      waitMs = if (others.isDefined) Polling.HoldMs else 0,
      inline = inline)
    val first = admit(gateway.queries.admit(ask), after)
    run.foreach(_.confirmed())
    QueryRuns.here.check()
    val answer = if (first.end == after && isAwaited) dataOrCommit(ask, first) else first
    polling.answered(after, nothingNew = answer.end == after)
    saw(start, answer)
    Position(info.name, answer.end)
  }

  /**
   * More data, if they come before all is committed: the next batch computes meanwhile, as it does
   * where nobody waits. Else the empty answer, once all is committed.
   */
  private def dataOrCommit(ask: AdmissionRequest, empty: Admission): Admission = {
    val held = ask.copy(others = Nil, waitMs = Polling.HoldMs)
    var answer = empty
    if (availableNowEnd.isDefined) QueryRuns.here.awaitCommitted()
    else
      while (answer.end == ask.after && QueryRuns.here.isCommitting)
        answer = admit(beforeCommit(held).getOrElse(empty), ask.after)
    answer
  }

  private def beforeCommit(held: AdmissionRequest): Option[Admission] =
    QueryRuns.here.answerBeforeCommit(gateway.queries.admit(held))

  /**
   * Whether somebody waits until all data are processed, which is until they are visible. Otherwise
   * the next data need not wait for the commit of the last.
   */
  private def isAwaited: Boolean =
    availableNowEnd.isDefined || reader.exists(StreamThread.isAwaited)

  override def reportLatestOffset(): Offset = latestSeen.orNull

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    val (after, until) = (start.asInstanceOf[Position].lsn, end.asInstanceOf[Position].lsn)
    val rows = cut.filter(batch => batch.after == after && batch.until == until).map(_.rows)
    ReadRange(info.name, after, until, columns, reader).perSubstream(substreams, rows)
  }

  override def createReaderFactory(): PartitionReaderFactory =
    new SubstreamReaderFactory(connection, options.failOnDataLoss)

  /** Spark says this before the batch is durable; rows are dropped by what markers say instead. */
  override def commit(end: Offset): Unit = ()

  override def stop(): Unit = drain()

  override def toString: String = s"penstock:${info.name}"

  private def admit(asked: => Admission, after: Long): Admission =
    try asked
    catch {
      case e: BadCall if DataLoss.Codes(e.code) && e.code != "unknown_stream" && !options.failOnDataLoss =>
        val now = gateway.streams.describe(info.name, reader)
        val end = if (after < now.earliest) now.earliest else now.latest
        logWarning(s"the query cannot go on from position $after of stream '${info.name}': " +
          s"${e.getMessage}; failOnDataLoss is false, so it goes on from $end")
        Admission(end, now.latest, now.substreams)
      case e: BadCall if DataLoss.Codes(e.code) => throw DataLoss.named(e)
    }

  private def rowsMax(limit: ReadLimit): Option[Long] = limit match {
    case rows: ReadMaxRows => Some(rows.maxRows())
    case all: CompositeReadLimit => all.getReadLimits.toSeq.flatMap(rowsMax(_)).minOption
    case _ => None
  }

  private def bytesMax(limit: ReadLimit): Option[Long] = limit match {
    case bytes: ReadMaxBytes => Some(bytes.maxBytes())
    case all: CompositeReadLimit => all.getReadLimits.toSeq.flatMap(bytesMax(_)).minOption
    case _ => None
  }
}

/** The rows of the batch that was cut last, where they came with the answer. */
private final case class CutBatch(after: Long, until: Long, rows: InlineRows)

private[source] object DataLoss {
  val Codes: Set[String] = Set("trimmed", "position_past_end", "unknown_stream")

  def named(e: BadCall): BadCall = new BadCall(
    e.code,
    s"${e.getMessage}; rows the query was to read are gone. Restore the log, or set the " +
      "source's option failOnDataLoss to false to go on without them")
}
