// Scala because: it implements interfaces of Spark's sources around another source.
package org.apache.spark.sql.penstock.admission

import java.util.{Map => JMap, Optional}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.penstock.WrappedSource

import penstock.admission.AdmittedSource

/**
 * The part of a source under admission that is the same for both of Spark's interfaces: admission
 * says how far a batch reads, and all else is left to the source itself.
 */
private[admission] trait AdmittedDelegate
    extends SupportsAdmissionControl
    with ReportsSourceMetrics
    with WrappedSource
    with AdmittedSource {

  /** The data that wait in the source. */
  protected def data: OutsideData

  /** The end of a source that takes no limit. */
  protected def endWithoutLimit: Offset

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = admitted() match {
    case Some(part) if part.isCut =>
      val taken = data.take(start, part.share, limit)
      took(taken.read, taken.left)
      taken.end
    case Some(_) => null
    case None =>
      delegate match {
        case limited: SupportsAdmissionControl => limited.latestOffset(start, limit)
        case _ => endWithoutLimit
      }
  }

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

  override def stop(): Unit =
    try delegate.stop()
    finally drain()

  override def toString: String = delegate.toString
}
