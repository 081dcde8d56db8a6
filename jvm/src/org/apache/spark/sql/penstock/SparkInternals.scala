package org.apache.spark.sql.penstock

import java.util.UUID

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector.types.pojo.Schema
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation
import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, StreamingExecutionRelation, StreamingQueryWrapper}
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils

/**
 * The few members of Spark that are `private[sql]` and that have no public twin: Spark's own
 * mapping between its types and Arrow's, its Arrow allocator, and the names under which the stream
 * thread knows its query. This file is in Spark's package for that reason alone.
 */
object SparkInternals {
  def sparkSchema(schema: Schema): StructType = ArrowUtils.fromArrowSchema(schema)

  def arrowSchema(schema: StructType): Schema =
    ArrowUtils.toArrowSchema(
      schema,
      timeZoneId = "UTC",
      errorOnDuplicatedFieldNames = true,
      largeVarTypes = false)

  def allocator(name: String): BufferAllocator =
    ArrowUtils.rootAllocator.newChildAllocator(name, 0, Long.MaxValue)

  /** Query and run of the calling thread, if it is the thread of a streaming query. */
  def streamThread: Option[(String, String)] = SparkSession.getActiveSession.flatMap { session =>
    val context = session.sparkContext
    for {
      query <- Option(context.getLocalProperty(StreamExecution.QUERY_ID_KEY))
      run <- Option(context.getLocalProperty("spark.jobGroup.id"))
    } yield (query, run)
  }

  /** The name a user gave a query; None if there is none, or while it is starting. */
  def nameOf(query: String): Option[String] = running(query).flatMap(q => Option(q.name))

  /** The sources of a running query; empty while it is starting. */
  def sourcesOf(query: String): Seq[SparkDataStream] = running(query).toSeq.flatMap {
    case wrapper: StreamingQueryWrapper =>
      wrapper.streamingQuery.logicalPlan.collect {
        case relation: StreamingDataSourceV2ScanRelation => relation.stream
        case relation: StreamingExecutionRelation => relation.source
      }
    case _ => Nil
  }

  private def running(query: String): Option[StreamingQuery] =
    SparkSession.getActiveSession.flatMap(s => Option(s.streams.get(UUID.fromString(query))))
}
