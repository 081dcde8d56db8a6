// Scala because: the stream thread, its plan and its local properties are objects of the
// driver's JVM.
package org.apache.spark.sql.penstock

import java.util.UUID

import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{Join, TransformWithState, TransformWithStateInPySpark}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation
import org.apache.spark.sql.execution.streaming.{RealTimeTrigger, Sink}
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOperatorStateInfo, StateStoreWriter}
import org.apache.spark.sql.execution.streaming.runtime.{AsyncProgressTrackingMicroBatchExecution, FileStreamSource, MicroBatchExecution, StreamExecution, StreamingExecutionRelation}
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSink
import org.apache.spark.sql.execution.streaming.sources.{ForeachBatchSink, RatePerMicroBatchStream, RateStreamMicroBatchStream}
import org.apache.spark.sql.internal.SQLConf

/**
 * A streaming query that runs on this driver, as its own stream thread and others see it: its name,
 * sources, sink and state stores. In Spark's package because Spark shows these nowhere else.
 */
object RunningQuery {
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

  /**
   * How far the batch that runs now reads each stream of the log. Where several sources read one
   * stream it is the least: after a crash the query reads on from there.
   */
  def positionsRead(query: String): Map[String, Long] = execution(query).toSeq
    .flatMap(_.availableOffsets.toSeq)
    .collect { case (source: LogSource, end) => source.positionIn(end) }
    .groupMapReduce(_._1)(_._2)(math.min)

  /** Whether our log is all that the query reads. */
  def readsOnlyFromLog(query: String): Boolean = {
    val sources = sourcesOf(query)
    sources.nonEmpty && sources.forall(_.isInstanceOf[LogSource])
  }

  /** What kind of sink a running query has. */
  def sinkOf(query: String): SinkKind = execution(query).map(_.sink) match {
    case Some(_: LogSink) => SinkKind.Log
    case Some(_: FileStreamSink) => SinkKind.Files
    case Some(_: ForeachBatchSink[_]) => SinkKind.ForeachBatch
    case _ => SinkKind.Other
  }

  /**
   * The class of the query's sink, if it may do nothing about a batch that it has when the batch is
   * run again. One that Spark hands a whole batch to may, as Delta's does. Spark's own two do not:
   * SinkLog sees to the file sink, and a function for foreachBatch must compute its batch.
   */
  def skippingSink(query: String): Option[String] =
    execution(query).map(_.sink.getClass).filter(maySkip(_, SparkMembers.FileSinkLog)).map(_.getName)

  /**
   * Whether a sink of this class may skip a batch that it has: Spark's older sinks may. The file sink
   * may only where the field that tells the place of its log is missing, as SinkLog needs that place.
   */
  private[penstock] def maySkip(sink: Class[_], logOf: SparkField[_, _]): Boolean =
    if (classOf[FileStreamSink].isAssignableFrom(sink)) !logOf.isThere
    else classOf[Sink].isAssignableFrom(sink) && !classOf[ForeachBatchSink[_]].isAssignableFrom(sink)

  /**
   * Whether a source of the query may delete what a batch has read once it is told that the batch
   * is done, which Spark tells it while the next one is cut. A source we do not know may.
   */
  def hasSourceThatDeletes(query: String): Boolean = sourcesOf(query).map(unwrapped).exists {
    case _: LogSource | _: RateStreamMicroBatchStream | _: RatePerMicroBatchStream => false
    case files: FileStreamSource => isCleaning(files, SparkMembers.FileCleaner)
    case other => other.getClass.getName != KafkaSource
  }

  /** True also where this version of Spark lacks the field. */
  private[penstock] def isCleaning[A](files: A, cleaner: SparkField[A, Option[_]]): Boolean =
    !cleaner.isThere || cleaner.of(files).isDefined

  /** The source that reads the rows: a wrapper of ours changes when, and nothing else. */
  private def unwrapped(source: SparkDataStream): SparkDataStream = source match {
    case wrapped: WrappedSource => wrapped.delegate
    case other => other
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
    partition <- 0 until partitionsOf(operator)
    store <- operator.stateStoreNames
  } yield (info.operatorId, partition, store)

  /**
   * In how many partitions an operator runs. Not always as many as its state may have, which is
   * what `stateInfo` tells: a global aggregate or limit gets all rows in one.
   */
  private def partitionsOf(operator: StateStoreWriter): Int =
    operator.children.head.outputPartitioning.numPartitions

  /** Whether the query has state, and in checkpoint format 2: under ids of each batch. */
  def keepsStateIds(query: String): Boolean = stores(query).nonEmpty && execution(query).exists {
    running => StatefulOperatorStateInfo.enableStateStoreCheckpointIds(
      running.sparkSessionForStream.sessionState.conf)
  }

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

  /**
   * Why Spark does not write offsets and commit of every batch of a query, one after the other, if
   * it does not.
   */
  def reasonForGaps(query: String): Option[String] = execution(query).flatMap { running =>
    if (running.trigger.isInstanceOf[RealTimeTrigger]) Some("Real-Time Mode")
    else
      Option.when(running.isInstanceOf[AsyncProgressTrackingMicroBatchExecution])(
        "the option asyncProgressTrackingEnabled")
  }

  /** A setting of the query whose stream thread is calling, and of no other. */
  def setForThisQuery(key: String, value: String): Unit =
    SparkSession.getActiveSession.foreach(_.conf.set(key, value))

  def isLocal: Boolean = SparkContext.getActive.exists(_.isLocal)

  /** The key under which tasks find the run they belong to in their Hadoop configuration. */
  val RunIdKey: String = StreamExecution.RUN_ID_KEY

  /** Where the file sink of a query keeps its log, if this version of Spark tells. */
  def sinkLogOf(query: String): Option[Path] =
    execution(query).map(_.sink).collect { case sink: FileStreamSink => sink }
      .flatMap(SparkMembers.FileSinkLog.ifAny)
      .map(_.metadataPath)

  private[penstock] val KafkaSource = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"

  /**
   * A running query, by what all sessions share: the stream thread's session is a clone, whose own
   * list of queries is empty.
   */
  private[penstock] def execution(query: String): Option[StreamExecution] =
    SparkSession.getActiveSession.collect { case session: ClassicSession =>
      session.sharedState.activeStreamingQueries.get(UUID.fromString(query))
    }.filter(_ != null)
}

/** A source that reads the log. */
trait LogSource {

  /** The stream and the position in it that an offset of this source tells. */
  def positionIn(offset: Offset): (String, Long)
}

/** A sink that writes to the log. */
trait LogSink

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
