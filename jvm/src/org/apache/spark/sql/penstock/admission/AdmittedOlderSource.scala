// Scala because: it implements Spark's older interface of a source around another one.
package org.apache.spark.sql.penstock.admission

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.execution.streaming.{Offset => OffsetV1, Source}
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSource
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

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
    with AdmittedDelegate {

  override val statedTerms: StatedTerms = StatedTerms.of(options)
  override val connection: Connection = Connection.of(options)
  protected override val data: OutsideData = delegate match {
    case files: FileStreamSource => new FolderData(files, clock)
    case other => new AskedData(other, (_, _) => None, Offer.ByNothing, clock)
  }

  override def lookFrom(start: Option[Offset]): BatchInput = data.look(start.orNull, getDefaultReadLimit)

  protected override def endWithoutLimit: Offset = delegate.getOffset.orNull

  override def getOffset: Option[OffsetV1] = delegate.getOffset

  override def schema: StructType = delegate.schema

  override def getBatch(start: Option[OffsetV1], end: OffsetV1): DataFrame = delegate.getBatch(start, end)

  override def commit(end: OffsetV1): Unit = delegate.commit(end)
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

  /** The source under admission; itself where nobody can tell which files wait in it. */
  def around(
      source: Source,
      options: CaseInsensitiveStringMap,
      canListFiles: Boolean = FolderData.isPossible): Source = source match {
    case files: FileStreamSource if !canListFiles => files
    case available: Source with SupportsTriggerAvailableNow =>
      new AdmittedOlderSourceAvailableNow(available, options)
    case other => new AdmittedOlderSource(other, options)
  }
}
