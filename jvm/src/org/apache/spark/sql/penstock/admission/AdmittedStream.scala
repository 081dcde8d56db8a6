// Scala because: it implements Spark's MicroBatchStream around the source of somebody else.
package org.apache.spark.sql.penstock.admission

import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.settings.{Connection, StatedTerms}
import penstock.wire.BatchInput

/**
 * A source of Spark's newer interface, whose batches are cut by admission. Offsets, checkpoint and
 * rows are the source's own, so that a query goes on from them without this class.
 */
private[admission] class AdmittedStream(
    override val delegate: MicroBatchStream,
    options: CaseInsensitiveStringMap)
    extends MicroBatchStream
    with AcceptsLatestSeenOffset
    with AdmittedDelegate {

  override val statedTerms: StatedTerms = StatedTerms.of(options)
  override val connection: Connection = Connection.of(options)
  protected override val data: OutsideData = new AskedData(
    delegate, OfferedRows.between(delegate, options), OfferedRows.cutsBy(delegate), clock)

  override def lookFrom(start: Option[Offset]): BatchInput = data.look(
    start.map(offset => delegate.deserializeOffset(offset.json())).getOrElse(delegate.initialOffset()),
    getDefaultReadLimit)

  protected override def endWithoutLimit: Offset = delegate.latestOffset()

  override def latestOffset(): Offset = delegate.latestOffset()

  override def setLatestSeenOffset(offset: Offset): Unit = delegate match {
    case accepting: AcceptsLatestSeenOffset => accepting.setLatestSeenOffset(offset)
    case _ =>
  }

  override def initialOffset(): Offset = delegate.initialOffset()

  override def deserializeOffset(json: String): Offset = delegate.deserializeOffset(json)

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] =
    delegate.planInputPartitions(start, end)

  override def createReaderFactory(): PartitionReaderFactory = delegate.createReaderFactory()

  override def commit(end: Offset): Unit = delegate.commit(end)
}

/** The same around a source that can fix what is available now. */
private final class AdmittedStreamAvailableNow(
    available: MicroBatchStream with SupportsTriggerAvailableNow,
    options: CaseInsensitiveStringMap)
    extends AdmittedStream(available, options)
    with SupportsTriggerAvailableNow {
  override def prepareForTriggerAvailableNow(): Unit = available.prepareForTriggerAvailableNow()
}

private[admission] object AdmittedStream {
  def around(stream: MicroBatchStream, options: CaseInsensitiveStringMap): AdmittedStream =
    stream match {
      case available: MicroBatchStream with SupportsTriggerAvailableNow =>
        new AdmittedStreamAvailableNow(available, options)
      case other => new AdmittedStream(other, options)
    }
}
