// Scala because: tasks measure these times, and the driver keeps them with Spark's events.
package penstock.observe

/**
 * Times of the tasks of a batch that write to the log, in ns, summed over them.
 *
 * @param openNs from a task's start to its writer's
 * @param rowsNs until the writer had its last row, without appends in between
 * @param appendNs of encoding and appending
 */
final case class SinkTimes(openNs: Long, rowsNs: Long, appendNs: Long) {
  def plus(other: SinkTimes): SinkTimes =
    SinkTimes(openNs + other.openNs, rowsNs + other.rowsNs, appendNs + other.appendNs)
}

object SinkTimes {
  val Zero: SinkTimes = SinkTimes(0, 0, 0)
}
