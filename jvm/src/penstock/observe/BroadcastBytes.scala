// Scala because: it is told of broadcasts by a listener in the driver's JVM.
package penstock.observe

import scala.collection.mutable

/**
 * Bytes that the driver broadcasts, and of them the tasks of stages. Spark submits a stage, puts its
 * serialised tasks, and launches them; all of it, and nothing else of the same query, happens in
 * between. What another query broadcasts at that moment is counted with them.
 */
final class BroadcastBytes {
  private val submitted = mutable.Set.empty[Int]
  private var allBytes = 0L
  private var taskBytes = 0L

  def submitted(stage: Int): Unit = submitted += stage

  /** Its tasks are under way, or there are none. */
  def launched(stage: Int): Unit = submitted -= stage

  def put(bytes: Long): Unit = {
    allBytes += bytes
    if (submitted.nonEmpty) taskBytes += bytes
  }

  /** The totals since this was last called, by their names. */
  def take(): Seq[(String, Long)] = {
    val totals = Seq("broadcast bytes" -> allBytes, "task bytes" -> taskBytes)
    allBytes = 0
    taskBytes = 0
    totals
  }
}
