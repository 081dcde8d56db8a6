// Scala because: it is a pool in the tree of Spark's scheduler, whose classes only code in this
// package can extend.
package org.apache.spark.scheduler

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicBoolean

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging

import penstock.{Clock, PartFailure}
import penstock.schedule.{TaskOrder, TaskSetKeys}

/**
 * The pool of queries with a deadline. Spark asks it, under its scheduler's lock and at every offer
 * of a core, in which order its task sets are to have it. So nothing here waits, reads or writes,
 * and what fails is answered with Spark's own order.
 *
 * Against other pools it is needy while none of its tasks runs, and heavier than any of them
 * otherwise: it is offered cores first, but a pool that has tasks waiting and none running comes
 * before it. So jobs outside keep one core for each of their pools, whatever the number of cores,
 * and get no more while tasks wait here. With a single core they wait for all that waits here.
 */
private[spark] final class DeadlinePool(label: String, order: TaskOrder.Order)
    extends Pool(label, SchedulingMode.FIFO, DeadlinePool.MinShare, DeadlinePool.Weight) {

  private val terms = new ConcurrentHashMap[Schedulable, TaskSetKeys.Terms]
  private val hasFailed = new AtomicBoolean

  override def addSchedulable(schedulable: Schedulable): Unit = {
    super.addSchedulable(schedulable)
    try keepTerms(schedulable)
    catch { case PartFailure(failure) => say(failure) }
  }

  override def removeSchedulable(schedulable: Schedulable): Unit = {
    terms.remove(schedulable)
    super.removeSchedulable(schedulable)
  }

  override def getSortedTaskSetQueue: ArrayBuffer[TaskSetManager] =
    try ordered
    catch {
      case PartFailure(failure) =>
        say(failure)
        super.getSortedTaskSetQueue
    }

  /** What a task set brings along is read once, when it comes. */
  private def keepTerms(schedulable: Schedulable): Unit = schedulable match {
    case manager: TaskSetManager =>
      terms.put(manager, TaskSetKeys.read(manager.taskSet.properties, Clock.System))
      ()
    case _ =>
  }

  /** Also task sets without a waiting task count, for the cores that they have. */
  private def ordered: ArrayBuffer[TaskSetManager] = {
    val managers = schedulableQueue.asScala.toSeq.map {
      case manager: TaskSetManager => manager
      case other => throw new IllegalStateException(s"${other.name} is no task set")
    }
    val byKey = managers.map(manager => manager.name -> manager).toMap
    val facts = managers.map { manager =>
      terms.get(manager).facts(manager.name, manager.priority, manager.stageId, manager.runningTasks)
    }
    ArrayBuffer.from(order(facts).map(set => byKey(set.key)).filter(_.isSchedulable))
  }

  /** Once, and from a thread of its own: a log is written to a disk, and the lock is held. */
  private def say(failure: Throwable): Unit =
    if (hasFailed.compareAndSet(false, true)) {
      val saying = new Thread(
        () =>
          logWarning(
            s"the order of the pool $name failed, and Spark's own is used instead, now and " +
              "whenever it fails again; deadlines may be missed, results are the same. Report this",
            failure),
        "penstock-pool-failure")
      saying.setDaemon(true)
      saying.start()
    }
}

object DeadlinePool extends Logging {
  val Name = "penstock"

  /** Spark's pool of jobs that name none. */
  private val Default = "default"

  /** While fewer tasks run here, cores are offered here before other pools. */
  private val MinShare = 1

  /** So heavy that any task of another pool outweighs all tasks here. */
  private val Weight = Int.MaxValue

  /**
   * Adds a pool with this order to the tree of a context whose scheduler is there and has no job yet:
   * later is too late, as a job that names a pool which is not there gets one of Spark's.
   */
  def addTo(context: SparkContext, order: TaskOrder.Order, name: String = Name): Unit = {
    val root = context.taskScheduler.rootPool
    if (root.getSchedulableByName(name) == null) {
      root.addSchedulable(new DeadlinePool(name, order))
    } else {
      logWarning(
        s"the scheduler has a pool named $name of its own, so there is none for queries with a " +
          "deadline; give that pool another name in spark.scheduler.allocation.file")
    }
  }

  /**
   * Puts the jobs of the calling thread into the pool, if it is there and the user has chosen none;
   * whether they are in it.
   */
  def enter(context: SparkContext): Boolean = {
    val chosen = context.getLocalProperty(SparkContext.SPARK_SCHEDULER_POOL)
    val mayEnter = (chosen == null || chosen == Name) && isIn(context)
    if (mayEnter) context.setLocalProperty(SparkContext.SPARK_SCHEDULER_POOL, Name)
    mayEnter
  }

  /**
   * Whether Spark shares the cores between the jobs of the calling thread, outside this pool, and
   * those of others: they are in a pool that the user has chosen, or the default pool shares. False
   * where the scheduler has no pools.
   */
  def isSharedOutside(context: SparkContext): Boolean =
    try {
      val scheduler = context.taskScheduler
      def default = Option(scheduler.rootPool.getSchedulableByName(Default))
      scheduler.schedulingMode == SchedulingMode.FAIR &&
      (Option(context.getLocalProperty(SparkContext.SPARK_SCHEDULER_POOL)).exists(_ != Default) ||
        default.exists(_.schedulingMode == SchedulingMode.FAIR))
    } catch { case NonFatal(_) => false } // a context that is stopping has no scheduler

  private def isIn(context: SparkContext): Boolean =
    try
      context.taskScheduler.schedulingMode == SchedulingMode.FAIR &&
      context.taskScheduler.rootPool.getSchedulableByName(Name).isInstanceOf[DeadlinePool]
    catch { case NonFatal(_) => false } // a context that is stopping has no scheduler
}
