package org.apache.spark.sql.kafka010

import scala.collection.immutable.SortedMap
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._

import penstock.wire.Json

/** An offset as Kafka's source writes it: by topic and partition, the number of the row to come. */
final case class TopicOffsets(ends: SortedMap[(String, Int), Long]) extends Offset {
  override def json(): String = {
    val node = Json.createObjectNode()
    ends.foreach { case ((topic, partition), end) => node.withObjectProperty(topic).put(partition.toString, end) }
    node.toString
  }
}

object TopicOffsets {
  def of(ends: ((String, Int), Long)*): TopicOffsets = TopicOffsets(SortedMap.from(ends))

  def read(json: String): TopicOffsets = of((for {
    topic <- Json.readTree(json).properties().asScala.toSeq
    partition <- topic.getValue.properties().asScala
  } yield (topic.getKey, partition.getKey.toInt) -> partition.getValue.asLong()): _*)
}

/**
 * A source that has the name of Kafka's, and its ways with limits: a batch has the least number of
 * rows or none, and a part of each partition of at least one row.
 */
final class KafkaMicroBatchStream(userLimit: ReadLimit) extends MicroBatchStream with SupportsAdmissionControl {
  var latest: TopicOffsets = TopicOffsets.of()

  override def getDefaultReadLimit: ReadLimit = userLimit

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val from = start.asInstanceOf[TopicOffsets].ends
    val sizes = latest.ends.map { case (at, end) => at -> (end - from.getOrElse(at, 0L)) }.filter(_._2 > 0)
    val limits = limit match {
      case several: CompositeReadLimit => several.getReadLimits.toSeq
      case single => Seq(single)
    }
    val least = limits.collectFirst { case min: ReadMinRows => min.minRows() }
    val most = limits.collectFirst { case max: ReadMaxRows => max.maxRows() }
    if (least.exists(_ > sizes.values.sum)) start
    else
      most.filter(_ < sizes.values.sum).fold(latest) { rows =>
        TopicOffsets(latest.ends.map { case (at, end) => at -> sizes.get(at).fold(end) { size =>
          val part = rows * (size.toDouble / sizes.values.sum)
          from.getOrElse(at, 0L) + (if (part < 1) math.ceil(part) else math.floor(part)).toLong
        } })
      }
  }

  override def latestOffset(): Offset = throw new UnsupportedOperationException

  override def initialOffset(): Offset = TopicOffsets(latest.ends.map { case (at, _) => at -> 0L })

  override def deserializeOffset(json: String): Offset = TopicOffsets.read(json)

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = Array.empty

  override def createReaderFactory(): PartitionReaderFactory = throw new UnsupportedOperationException

  override def commit(end: Offset): Unit = ()

  override def stop(): Unit = ()
}
