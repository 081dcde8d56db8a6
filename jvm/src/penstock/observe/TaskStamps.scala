// Scala because: hooks of Spark's executor plug-in stamp the beginning and the end of every task.
package penstock.observe

import java.util.concurrent.ConcurrentHashMap

/** When a task began on its executor, and when its result was made, by the wall clock. */
final class TaskStamp(val beganMs: Long) {
  @volatile var endedMs: Option[Long] = None
}

/**
 * Stamps of the tasks of this JVM that Spark has not reported to the driver as ended. They mean
 * something beside Spark's stamps of launch and finish, which are the driver's, only in its own JVM.
 */
final class TaskStamps(wallMs: () => Long) {
  private val open = new ConcurrentHashMap[Long, TaskStamp]()

  /** None where so many are open that Spark seems to report no more of them. */
  def began(task: Long): Option[TaskStamp] =
    Option.when(open.size < TaskStamps.OpenMax) {
      val stamp = new TaskStamp(wallMs())
      open.put(task, stamp)
      stamp
    }

  def ended(stamp: TaskStamp): Unit = stamp.endedMs = Some(wallMs())

  /** The stamps of a task that is reported, which are forgotten. */
  def take(task: Long): Option[TaskStamp] = Option(open.remove(task))
}

private object TaskStamps {
  val OpenMax = 10000
}
