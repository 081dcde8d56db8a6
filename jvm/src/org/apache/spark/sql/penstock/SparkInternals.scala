package org.apache.spark.sql.penstock

import java.io.{ByteArrayInputStream, EOFException, File}
import java.nio.file.Path
import java.util.UUID

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector.types.pojo.Schema
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FSDataInputStream, Path => HadoopPath, PositionedReadable, Seekable}
import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{Join, TransformWithState, TransformWithStateInPySpark}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.{FileStreamSource, MicroBatchExecution, StreamExecution, StreamingExecutionRelation}
import org.apache.spark.sql.execution.streaming.sinks.{FileStreamSink, FileStreamSinkLog}
import org.apache.spark.sql.execution.streaming.sources.{ForeachBatchSink, RatePerMicroBatchStream, RateStreamMicroBatchStream}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.util.Utils

import penstock.PenstockTable
import penstock.source.LogMicroBatchStream

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

  /** The name a user gave a query. */
  def nameOf(query: String): Option[String] = execution(query).flatMap(q => Option(q.name))

  /** The sources of a running query. */
  def sourcesOf(query: String): Seq[SparkDataStream] = execution(query).toSeq.flatMap {
    _.logicalPlan.collect {
      case relation: StreamingDataSourceV2ScanRelation => relation.stream
      case relation: StreamingExecutionRelation => relation.source
    }
  }

  /** Whether our log is all that the query reads. */
  def readsOnlyFromLog(query: String): Boolean = {
    val sources = sourcesOf(query)
    sources.nonEmpty && sources.forall(_.isInstanceOf[LogMicroBatchStream])
  }

  /** What kind of sink a running query has. */
  def sinkOf(query: String): SinkKind = execution(query).map(_.sink) match {
    case Some(_: PenstockTable) => SinkKind.Log
    case Some(_: FileStreamSink) => SinkKind.Files
    case Some(_: ForeachBatchSink[_]) => SinkKind.ForeachBatch
    case _ => SinkKind.Other
  }

  /**
   * Whether a source of the query may delete what a batch has read once it is told that the batch
   * is done, which Spark tells it while the next one is cut. A source we do not know may.
   */
  def hasSourceThatDeletes(query: String): Boolean = sourcesOf(query).exists {
    case _: LogMicroBatchStream | _: RateStreamMicroBatchStream | _: RatePerMicroBatchStream => false
    case files: FileStreamSource => FileCleaner.get(files) != None
    case other => other.getClass.getName != KafkaSource
  }

  /** The batch that the calling stream thread is at. */
  def batchOfThisThread: Option[Long] = SparkSession.getActiveSession.flatMap { session =>
    Option(session.sparkContext.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).map(_.toLong)
  }

  /** Operator, partition and name of every state store of the batch that was planned last. */
  def stores(query: String): Seq[(Long, Int, String)] = for {
    execution <- execution(query).toSeq
    planned <- Option(execution.lastExecution).toSeq
    operator <- planned.executedPlan.collect { case writer: StateStoreWriter => writer }
    info <- operator.stateInfo.toSeq
    partition <- 0 until info.numPartitions
    store <- operator.stateStoreNames
  } yield (info.operatorId, partition, store)

  /** Ends the jobs of a run, whose results can no longer be committed. */
  def cancelJobs(run: String, why: String): Unit =
    SparkContext.getActive.foreach(_.cancelJobGroup(run, why))

  def isActive(query: String): Boolean = execution(query).isDefined

  /** Whether Spark takes no provider but its own for the query, not even one that extends it. */
  def insistsOnItsProvider(query: String): Boolean = execution(query).exists { running =>
    val joinVersion = running.sparkSessionForStream.sessionState.conf
      .getConf(SQLConf.STREAMING_JOIN_STATE_FORMAT_VERSION)
    running.analyzedPlan.exists {
      case _: TransformWithState | _: TransformWithStateInPySpark => true
      case join: Join => join.left.isStreaming && join.right.isStreaming && joinVersion >= 4
      case _ => false
    }
  }

  /** A setting of the query whose stream thread is calling, and of no other. */
  def setForThisQuery(key: String, value: String): Unit =
    SparkSession.getActiveSession.foreach(_.conf.set(key, value))

  def isLocal: Boolean = SparkContext.getActive.exists(_.isLocal)

  /** The key under which tasks find the run they belong to in their Hadoop configuration. */
  val RunIdKey: String = StreamExecution.RUN_ID_KEY

  /** Spark's folder for temporary files of this JVM; Spark deletes it at the end. */
  def localFolder: Path = Path.of(Utils.getLocalDir(SparkEnv.get.conf))

  def deleteRecursively(folder: File): Unit = Utils.deleteRecursively(folder)

  def openLocal(file: File, conf: Configuration): FSDataInputStream =
    FileSystem.getLocal(conf).getRaw.open(new HadoopPath(file.toURI))

  def openBytes(bytes: Array[Byte]): FSDataInputStream =
    new FSDataInputStream(new SeekableBytes(bytes))

  /** Where the file sink of a query keeps its log. */
  def sinkLogOf(query: String): Option[HadoopPath] =
    execution(query).map(_.sink).collect { case sink: FileStreamSink =>
      FileSinkLog.get(sink).asInstanceOf[FileStreamSinkLog].metadataPath
    }

  /** Private in Spark, and nothing else tells where it is. */
  private val FileSinkLog = {
    val field = classOf[FileStreamSink].getDeclaredField("fileLog")
    field.setAccessible(true)
    field
  }

  private val KafkaSource = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"

  /** Private in Spark, and the only sign of the option `cleanSource`. */
  private val FileCleaner = {
    val field = classOf[FileStreamSource].getDeclaredField("sourceCleaner")
    field.setAccessible(true)
    field
  }

  /**
   * A running query, by what all sessions share: the stream thread's session is a clone, whose own
   * list of queries is empty.
   */
  private def execution(query: String): Option[StreamExecution] =
    SparkSession.getActiveSession.collect { case session: ClassicSession =>
      session.sharedState.activeStreamingQueries.get(UUID.fromString(query))
    }.filter(_ != null)
}

/** Kinds of sinks, by when they show a batch. */
sealed trait SinkKind

object SinkKind {

  /** When its marker is appended. */
  case object Log extends SinkKind

  /** When its job ends. */
  case object Files extends SinkKind

  /** When its rows are first looked at. */
  case object ForeachBatch extends SinkKind

  /** Nobody knows. */
  case object Other extends SinkKind
}

/** Bytes in memory, as Hadoop wants a stream to be. */
private final class SeekableBytes(bytes: Array[Byte])
    extends ByteArrayInputStream(bytes)
    with Seekable
    with PositionedReadable {
  override def seek(position: Long): Unit = pos = position.toInt

  override def getPos: Long = pos.toLong

  override def seekToNewSource(target: Long): Boolean = false

  override def read(position: Long, buffer: Array[Byte], offset: Int, length: Int): Int = {
    val count = math.min(length.toLong, bytes.length - position).toInt
    if (count <= 0) -1
    else {
      System.arraycopy(bytes, position.toInt, buffer, offset, count)
      count
    }
  }

  override def readFully(position: Long, buffer: Array[Byte], offset: Int, length: Int): Unit =
    if (read(position, buffer, offset, length) < length) throw new EOFException()

  override def readFully(position: Long, buffer: Array[Byte]): Unit =
    readFully(position, buffer, 0, buffer.length)
}
