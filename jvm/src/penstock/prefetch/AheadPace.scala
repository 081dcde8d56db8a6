// Scala because: a thread of the JVM whose tasks read a substream waits until its moments.
package penstock.prefetch

import penstock.Clock

/**
 * When the log is asked for what waits in it behind a batch. Each question costs the same however
 * many rows answer it, so there are a few for each batch, not so many for each second: the interval
 * is a share of the time between the last two batches. At this share the second question comes
 * shortly before the next batch is cut, and what comes after it is hinted in the batch itself.
 * Pure: the time is an argument.
 */
final class AheadPace {
  import AheadPace._

  private var beganNs = Option.empty[Long]
  private var intervalNs = LeastNs
  private var atNs = Long.MinValue

  /**
   * A batch begins to read.
   *
   * @param isMoreKnown rows are known to wait behind it, as in a backlog: they are read now
   */
  def batchBegan(nowNs: Long, isMoreKnown: Boolean): Unit = {
    beganNs.foreach { before =>
      intervalNs = math.min(MostNs, math.max(LeastNs, (Share * (nowNs - before)).toLong))
    }
    atNs = if (isMoreKnown || beganNs.isEmpty) nowNs else nowNs + intervalNs
    beganNs = Some(nowNs)
  }

  /** The log was asked; there may be more than was read in one turn. */
  def asked(nowNs: Long, isMoreKnown: Boolean): Unit =
    atNs = if (isMoreKnown) nowNs else nowNs + intervalNs

  /** How long to wait from now on; not above 0: the moment is here. */
  def waitNs(nowNs: Long): Long = atNs - nowNs
}

object AheadPace {
  val Share = 0.4

  /** Batches that are shorter are over before what was asked for them is here. */
  val LeastNs: Long = 20 * Clock.NsInMs

  /** A query that waits for rows has long times between batches, and reads them as they come. */
  val MostNs: Long = 250 * Clock.NsInMs
}
