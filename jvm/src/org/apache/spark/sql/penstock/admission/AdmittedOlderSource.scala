// Scala because: it implements Spark's older interface of a source around another one.
package org.apache.spark.sql.penstock.admission

import java.util.{Map => JMap, Optional}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.execution.streaming.{Offset => OffsetV1, Source}
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSource
import org.apache.spark.sql.penstock.WrappedSource
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.Clock
import penstock.admission.AdmittedSource
import penstock.settings.{Connection, StatedTerms}
import penstock.wire.{BatchInput, Offer}

/**
 * A source of Spark's older interface, as its files are, whose batches are cut by admission.
 * Offsets, checkpoint and rows are the source's own.
 */
private[admission] class AdmittedOlderSource(
    override val delegate: Source,
    options: CaseInsensitiveStringMap)
    extends Source
    with SupportsAdmissionControl
    with ReportsSourceMetrics
    with WrappedSource
    with AdmittedSource {

  override val statedTerms: StatedTerms = StatedTerms.of(options)
  override val connection: Connection = Connection.of(options)
  private val data: OutsideData = delegate match {
    case files: FileStreamSource => new FolderData(files, Clock.System)
    case other => new AskedData(other, (_, _) => None, Offer.ByNothing, Clock.System)
  }

  override def lookFrom(start: Option[Offset]): BatchInput = data.look(start.orNull)

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = admitted() match {
    case Some(part) => if (part.isCut) data.take(start, part.share, limit) else null
    case None =>
      delegate match {
        case limited: SupportsAdmissionControl => limited.latestOffset(start, limit)
        case other => other.getOffset.orNull
      }
  }

  override def getOffset: Option[OffsetV1] = delegate.getOffset

  override def getDefaultReadLimit: ReadLimit = delegate match {
    case limited: SupportsAdmissionControl => limited.getDefaultReadLimit
    case _ => ReadLimit.allAvailable()
  }

  override def reportLatestOffset(): Offset = delegate match {
    case limited: SupportsAdmissionControl => limited.reportLatestOffset()
    case _ => data.latest
  }

  override def metrics(latestConsumed: Optional[Offset]): JMap[String, String] = {
    val own = delegate match {
      case reporting: ReportsSourceMetrics => reporting.metrics(latestConsumed).asScala.toMap
      case _ => Map.empty[String, String]
    }
    (own ++ admissionMetrics()).asJava
  }

  override def schema: StructType = delegate.schema

  override def getBatch(start: Option[OffsetV1], end: OffsetV1): DataFrame = delegate.getBatch(start, end)

  override def commit(end: OffsetV1): Unit = delegate.commit(end)

  override def stop(): Unit = delegate.stop()

  override def toString: String = delegate.toString
}

/** The same around a source that can fix what is available now. */
private final class AdmittedOlderSourceAvailableNow(
    available: Source with SupportsTriggerAvailableNow,
    options: CaseInsensitiveStringMap)
    extends AdmittedOlderSource(available, options)
    with SupportsTriggerAvailableNow {
  override def prepareForTriggerAvailableNow(): Unit = available.prepareForTriggerAvailableNow()
}

private[admission] object AdmittedOlderSource {
  def around(source: Source, options: CaseInsensitiveStringMap): AdmittedOlderSource = source match {
    case available: Source with SupportsTriggerAvailableNow =>
      new AdmittedOlderSourceAvailableNow(available, options)
    case other => new AdmittedOlderSource(other, options)
  }
}
