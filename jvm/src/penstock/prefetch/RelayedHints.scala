// Scala because: tasks and endpoints of one JVM count here the hints that leave it or come in.
package penstock.prefetch

import java.util.concurrent.atomic.AtomicLong

/** Counts blocks of hints for the state of other executors, on one JVM. */
final class RelayedHints {
  private val passed = new AtomicLong
  private val received = new AtomicLong
  private val lost = new AtomicLong

  /** The driver sends a block on: counted before an answer to it can come. */
  def passedOn(): Unit = { passed.incrementAndGet(); () }

  /** An executor has taken a block for its state; counted there, and on the driver by its answer. */
  def arrived(): Unit = { received.incrementAndGet(); () }

  /** Blocks for which there was no room, or whose store is loaded nowhere, or no longer where they went. */
  def dropped(blocks: Long): Unit = { lost.addAndGet(blocks); () }

  /** What was dropped here since this was last asked: an executor tells the driver. */
  def takeDropped(): Long = lost.getAndSet(0)

  def passedCount: Long = passed.get

  def arrivedCount: Long = received.get

  def droppedCount: Long = lost.get
}
