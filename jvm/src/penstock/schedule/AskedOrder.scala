// Scala because: the settings of a context are read in its JVM, before its scheduler is made.
package penstock.schedule

import penstock.BadCall
import penstock.settings.Keys

/** The order that the settings of a context ask for. */
object AskedOrder {
  private val ModeKey = "spark.scheduler.mode"

  /** None where Spark's scheduler is left as it is. An order of ours needs one with pools. */
  def in(get: String => Option[String]): Option[TaskOrder.Order] = {
    val policy = Keys.Schedule.value(get)
    val mode = get(ModeKey).getOrElse("FIFO")
    if (policy != Keys.SparkSchedule && !mode.equalsIgnoreCase("FAIR")) {
      throw new BadCall(
        "bad_setting",
        s"${Keys.Schedule} is $policy, which needs a scheduler with pools, and $ModeKey is $mode; " +
          s"set that to FAIR, or ${Keys.Schedule} to ${Keys.SparkSchedule}")
    }
    Option.when(policy != Keys.SparkSchedule)(TaskOrder.of(policy))
  }
}
