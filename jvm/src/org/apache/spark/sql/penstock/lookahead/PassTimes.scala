// Scala because: Spark's accumulators carry it from tasks to the driver, with the end of a task.
package org.apache.spark.sql.penstock.lookahead

import org.apache.spark.util.AccumulatorV2

/**
 * When the rows of a batch passed a node of the plan, over all its tasks, in milliseconds since
 * 1970; nothing where no row did.
 *
 * @param beganMs the first task asked for its first row
 * @param firstMs the first row passed
 * @param mostMs 99 % of the rows of the last task had passed, if they came evenly
 * @param endedMs no row was left of the first task that got to its end
 */
private[lookahead] final case class PassTime(beganMs: Long, firstMs: Long, mostMs: Long, endedMs: Long) {

  def +(other: PassTime): PassTime = PassTime(
    math.min(beganMs, other.beganMs),
    math.min(firstMs, other.firstMs),
    math.max(mostMs, other.mostMs),
    math.min(endedMs, other.endedMs))
}

private[lookahead] object PassTime {

  /** Of one task, whose rows are taken to come evenly: each would cost a look at the clock. */
  def ofTask(beganMs: Long, firstMs: Long, endedMs: Long): PassTime =
    PassTime(beganMs, firstMs, endedMs - (endedMs - firstMs) / 100, endedMs)
}

/** The times of all tasks of one node, summed up on the driver. */
private[lookahead] final class PassTimes extends AccumulatorV2[PassTime, Option[PassTime]] {
  private var sum: Option[PassTime] = None

  override def isZero: Boolean = sum.isEmpty

  override def copy(): PassTimes = {
    val copied = new PassTimes
    copied.sum = sum
    copied
  }

  override def reset(): Unit = sum = None

  override def add(time: PassTime): Unit = sum = Some(sum.fold(time)(_ + time))

  override def merge(other: AccumulatorV2[PassTime, Option[PassTime]]): Unit = other.value.foreach(add)

  override def value: Option[PassTime] = sum
}
