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
    case _ if isKafka(source) => Some(kafkaRows(end) - kafkaRows(start))
    case _ => None
  }

  /** The sum of a topic's offsets over its partitions, of all topics. */
  private def kafkaRows(offset: String): Long = {
    for {
      topic <- Json.readTree(offset).elements().asScala
      partition <- topic.elements().asScala
    } yield partition.asLong()
  }.sum

  private def isKafka(source: SparkDataStream): Boolean =
    source.getClass.getName == RunningQuery.KafkaSource
}
