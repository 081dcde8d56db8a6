// Scala because: offsets of Spark's sources are objects of the driver's JVM.
package org.apache.spark.sql.penstock.admission

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream, SupportsAdmissionControl}
import org.apache.spark.sql.execution.streaming.sources.{RatePerMicroBatchStream, RateStreamMicroBatchStream}
import org.apache.spark.sql.penstock.RunningQuery
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.wire.{Json, Offer}

/** What is known of sources by their kind: how many rows an offset is past another, and limits. */
private[admission] object OfferedRows {

  /** How many rows lie between two offsets; nothing where the source's offsets do not tell. */
  def between(source: SparkDataStream, options: CaseInsensitiveStringMap)(
      start: Offset,
      end: Offset): Option[Long] =
    if (start == null) None
    else Try(count(source, options, start.json(), end.json())).toOption.flatten

  /** What a source can be told to read at most. */
  def cutsBy(source: SparkDataStream): String = source match {
    case _ if isKafka(source) => Offer.ByRows
    // It states a limit of rows and takes none.
    case _: RatePerMicroBatchStream => Offer.ByNothing
    case limited: SupportsAdmissionControl if RowLimit.of(limited.getDefaultReadLimit).isDefined =>
      Offer.ByRows
    case _ => Offer.ByNothing
  }

  private def count(
      source: SparkDataStream,
      options: CaseInsensitiveStringMap,
      start: String,
      end: String): Option[Long] = source match {
    case _: RateStreamMicroBatchStream if !options.containsKey("rampUpTime") =>
      Some((end.toLong - start.toLong) * options.getLong("rowsPerSecond", 1L))
    case _: RatePerMicroBatchStream =>
      Some(Json.readTree(end).path("offset").asLong() - Json.readTree(start).path("offset").asLong())
    case _ if isKafka(source) => Some(kafkaRows(start, end))
    case _ => None
  }

  /** Of all partitions at the end; one that the start does not have is read from its beginning. */
  private def kafkaRows(start: String, end: String): Long = {
    val starts = Json.readTree(start)
    val rows = for {
      topic <- Json.readTree(end).properties().asScala.toSeq
      partition <- topic.getValue.properties().asScala.toSeq
    } yield partition.getValue.asLong() - starts.path(topic.getKey).path(partition.getKey).asLong(0L)
    rows.sum
  }

  private def isKafka(source: SparkDataStream): Boolean =
    source.getClass.getName == RunningQuery.KafkaSource
}
