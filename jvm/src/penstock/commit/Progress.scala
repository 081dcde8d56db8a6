// Scala because: drivers and executors decide by the same rules whether a piece may become
// durable.
package penstock.commit

/** How far a run is, and what that allows: the same for its driver and for whoever writes state. */
trait Progress {
  def released: Long
  def committed: Long
  def copied: Long
  def withLog: Boolean

  /** `isLarge`: too large for the log. */
  def mayMakeDurable(batch: Long, isLarge: Boolean): Boolean =
    (withLog && !isLarge) || batch <= released

  /** `isRequired`: the batch waits for the snapshot, and is not recovered without it. */
  def mayShowSnapshot(batch: Long, isRequired: Boolean): Boolean =
    batch <= (if (isRequired) released else copied)
}
