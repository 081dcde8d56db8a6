// Scala because: the stream thread, its progress lock and its local properties are objects of the
// driver's JVM.
package org.apache.spark.sql.penstock

import java.util.concurrent.locks.{Condition, ReentrantLock}

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.DeadlinePool
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}
import org.apache.spark.sql.execution.streaming.{
  AvailableNowTrigger,
  OneTimeTrigger,
  ProcessingTimeTrigger,
  RealTimeTrigger
}

import penstock.Clock
import penstock.schedule.TaskSetKeys

/** How Spark decides when a query looks for data. */
sealed trait TriggerKind

object TriggerKind {

  /** Again as soon as a batch has ended. */
  case object AtOnce extends TriggerKind
  case object AvailableNow extends TriggerKind
  case object Once extends TriggerKind

  /** In a way that leaves no room for a deadline; `words` name it. */
  final case class OfItsOwn(words: String) extends TriggerKind
}

/**
 * What admission sees and sets on the thread of a streaming query, between two of its batches. In
 * Spark's package because Spark shows these nowhere else.
 */
object StreamThread {

  def triggerOf(query: String): TriggerKind =
    RunningQuery.execution(query).map(_.trigger).fold[TriggerKind](TriggerKind.AtOnce) {
      case OneTimeTrigger => TriggerKind.Once
      case AvailableNowTrigger => TriggerKind.AvailableNow
      case interval: ProcessingTimeTrigger if interval.intervalMs > 0 =>
        TriggerKind.OfItsOwn(s"a trigger interval of ${interval.intervalMs} ms")
      case _: RealTimeTrigger => TriggerKind.OfItsOwn("Real-Time Mode")
      case _ => TriggerKind.AtOnce
    }

  /** Where the batch that is being cut begins, for each source that has read anything. */
  def startsOf(query: String): Map[SparkDataStream, Offset] =
    RunningQuery.execution(query).toSeq.flatMap(_.getStartOffsetsOfLatestBatch.toSeq).toMap

  /**
   * Whether a thread waits in `processAllAvailable` or for the lock that such waits share: it would
   * take withheld data for none. Only the stream thread, which holds that lock, may ask.
   */
  def isAwaited(query: String): Boolean = RunningQuery.execution(query).exists(
    isAwaited(_, SparkMembers.ProgressLock, SparkMembers.ProgressCondition))

  /** True also where this version of Spark lacks the lock: nobody then waits for withheld data. */
  private[penstock] def isAwaited[A](
      running: A,
      progressLock: SparkMethod[A, ReentrantLock],
      progressCondition: SparkMethod[A, Condition]): Boolean = {
    val isWaitedOn = for {
      lock <- progressLock.ifAny(running)
      condition <- progressCondition.ifAny(running)
    } yield lock.isHeldByCurrentThread && (lock.hasWaiters(condition) || lock.hasQueuedThreads)
    isWaitedOn.getOrElse(true)
  }

  /** The slide of the query's windows. */
  def windowSlideMs(query: String): Option[Long] =
    RunningQuery.execution(query).flatMap(running => WindowSlide.msOf(running.analyzedPlan))

  /** A setting of the session that the calling thread works for. */
  def setting(key: String): Option[String] =
    SparkSession.getActiveSession.flatMap(_.conf.getOption(key))

  def context: Option[SparkContext] = SparkSession.getActiveSession.map(_.sparkContext)

  def application: String = context.map(_.applicationId).getOrElse("")

  /** The cores of all executors that are there now. */
  def cores: Int = context.fold(1) { context =>
    val ofExecutors = context.statusStore.executorList(true).map(_.totalCores).sum
    math.max(1, if (ofExecutors > 0) ofExecutors else context.defaultParallelism)
  }

  /** The most tasks that run at once on one machine. */
  def tasksOfMachine: Int = context.fold(1) { context =>
    val executors = context.statusStore.executorList(true)
    val tasks = tasksOfMachine(executors.map(each => each.hostPort -> each.maxTasks))
    if (tasks > 0) tasks else context.defaultParallelism
  }

  /** The same, by the address of each executor and how many tasks it runs at once. */
  def tasksOfMachine(executors: Seq[(String, Int)]): Int =
    executors.groupMapReduce { case (address, _) => address.replaceFirst(Port, "") } { case (_, tasks) =>
      tasks
    }(_ + _).values.maxOption.getOrElse(0)

  private val Port = ":\\d+$"

  /**
   * Tells the scheduler about the jobs that the calling thread starts from now on, and puts them
   * into our pool where there is one and the user has chosen none. Spark keeps such properties until
   * they are set anew.
   *
   * @param leftMs how far off their deadline is
   */
  def setJobs(query: String, leftMs: Option[Double], weight: Double, clock: Clock): Unit =
    context.foreach { context =>
      val deadlineAtMs = leftMs.map(TaskSetKeys.deadlineAtMs(_, clock))
      context.setLocalProperty(TaskSetKeys.Query, query)
      context.setLocalProperty(TaskSetKeys.DeadlineAt, deadlineAtMs.map(_.toString).orNull)
      context.setLocalProperty(TaskSetKeys.Weight, weight.toString)
      DeadlinePool.enter(context)
      ()
    }

  /** Whether the jobs that the calling thread starts are in our pool. */
  def isInPool: Boolean = context.exists(_.getLocalProperty(SparkContext.SPARK_SCHEDULER_POOL) == DeadlinePool.Name)

  /** Whether Spark shares the cores between those jobs and others, where they are not in our pool. */
  def isSharedOutsidePool: Boolean = context.exists(DeadlinePool.isSharedOutside)
}

/** A source of ours around another one, which has the offsets and reads the rows. */
trait WrappedSource {
  def delegate: SparkDataStream
}
