// Scala because: every row that a task writes to a state store passes it.
package penstock.eviction

/**
 * A lower bound of the event times of the rows in one store, in microseconds, and the scans that it
 * saves. May be too low, never too high. The specification, with the order of the calls, is
 * `penstock.eviction.least_time`; both answer the same vectors.
 */
final class LeastTime {
  import LeastTime._

  private var isKnown = false
  private var boundUs = NoRowUs
  private var isScanned = false
  private var untilUs = 0L
  private var keptUs = NoRowUs
  private var expired = 0L
  private var removals = 0L

  def opened(isEmpty: Boolean): Unit = {
    isKnown = isEmpty
    boundUs = NoRowUs
    isScanned = false
  }

  def forgotten(): Unit = opened(isEmpty = false)

  def put(timeUs: Long): Unit = {
    boundUs = math.min(boundUs, timeUs)
    keptUs = math.min(keptUs, timeUs)
  }

  /** Whether no row of the store has a time at or below `until`. */
  def maySkip(until: Long): Boolean = isKnown && boundUs > until

  /** A scan begins that removes rows up to `until`; it takes the place of one that was cut off. */
  def begun(until: Long): Unit = {
    isScanned = true
    untilUs = until
    keptUs = NoRowUs
    expired = 0
    removals = 0
  }

  /** The scan has come to a row; true if the row is expired. */
  def read(timeUs: Long): Boolean = {
    val isExpired = timeUs <= untilUs
    if (isExpired) expired += 1 else keptUs = math.min(keptUs, timeUs)
    isExpired
  }

  /** A row that the scan has handed out was removed. */
  def removed(): Unit = removals += 1

  /** The scan has read all rows: what it has not removed is known. */
  def ended(): Unit = {
    if (isScanned && removals >= expired) {
      isKnown = true
      boundUs = keptUs
    }
    isScanned = false
  }

  /** Rows were read for their times alone; the least of them is exact. */
  def measured(leastUs: Long): Unit = {
    isKnown = true
    boundUs = leastUs
    isScanned = false
  }
}

object LeastTime {

  /** The least time of a store without rows; no watermark reaches it. */
  val NoRowUs: Long = Long.MaxValue
}
