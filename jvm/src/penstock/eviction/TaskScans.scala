// Scala because: an operator's task and the state stores that it opens meet here, on an executor.
package penstock.eviction

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext

/**
 * A column family of a store; without families there is the one that Spark calls default.
 *
 * @param location the folder of the store in the checkpoint
 */
final case class StoreFamily(location: String, family: String)

/**
 * A scan of state that an operator makes to evict, as its plan says.
 *
 * @param scanned the rows that the operator goes through
 * @param timed the rows that have the event times; other ones than `scanned` if the operator looks
 *   them up one by one
 * @param untilUs rows with a time at or below are removed
 */
final case class DeclaredScan(
    scanned: StoreFamily,
    timed: StoreFamily,
    column: TimeColumn,
    untilUs: Long) {

  /** Whether the rows that are gone through have the times themselves. */
  def isDirect: Boolean = scanned == timed
}

/** What a store tells of its rows' times to a scan of another one. */
trait TimedStore {

  /** Whether no row of the family has a time at or below `untilUs`; may read all of them. */
  def hasNothingUntil(family: String, untilUs: Long): Boolean

  /** Rows of the family are about to be removed: what is known of their times is not exact. */
  def isEvicted(family: String): Unit
}

/** What became of an operator's scans in a task; Spark's metrics take the numbers to the driver. */
trait ScanCounts {
  def skipped(): Unit
  def made(): Unit
}

/** A scan of a running task, and where its outcome is counted. */
final case class RunningScan(scan: DeclaredScan, counts: ScanCounts)

/** The scans of one task, known before the first store of it is opened. */
final class TaskScans private[eviction] {
  private val scans = new ConcurrentHashMap[StoreFamily, RunningScan]()
  private val stores = new ConcurrentHashMap[String, TimedStore]()

  def scanOf(rows: StoreFamily): Option[RunningScan] = Option(scans.get(rows))

  /** The families of a store whose times are of use, with where they are. */
  def columnsOf(location: String): Map[String, TimeColumn] = scans.values.asScala
    .map(_.scan)
    .collect { case scan if scan.timed.location == location => scan.timed.family -> scan.column }
    .toMap

  /** A store of the task is open. */
  def opened(location: String, store: TimedStore): Unit = { stores.put(location, store); () }

  def storeAt(location: String): Option[TimedStore] = Option(stores.get(location))

  private[eviction] def declare(running: RunningScan): Unit = {
    scans.put(running.scan.scanned, running)
    ()
  }
}

/**
 * The scans of the tasks that run in this JVM, by task attempt: the watermark of an attempt that
 * nobody waits for any more, of a batch before this one, is never taken for the one that counts.
 */
final class ScansByAttempt {
  private val byAttempt = new ConcurrentHashMap[Long, TaskScans]()

  /** The scans of the attempt on this thread; None: it has none, or this is no task. */
  def ofThisTask: Option[TaskScans] =
    Option(TaskContext.get()).flatMap(task => Option(byAttempt.get(task.taskAttemptId())))

  /** Kept until the attempt ends. */
  def declare(task: TaskContext, scans: Seq[DeclaredScan], counts: ScanCounts): Unit = {
    val attempt = task.taskAttemptId()
    val declared = byAttempt.computeIfAbsent(attempt, _ => {
      task.addTaskCompletionListener[Unit](_ => { byAttempt.remove(attempt); () })
      new TaskScans
    })
    scans.foreach(scan => declared.declare(RunningScan(scan, counts)))
  }

  /** How many attempts have scans. */
  def size: Int = byAttempt.size
}

/** What Spark's metrics of scans are called; it reports a metric under this name. */
object ScanNames {
  val Skipped = "eviction scans skipped"
  val Made = "eviction scans"
}
