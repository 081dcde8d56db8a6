// Scala because: threads of one JVM wait here for each other, at every step of every batch.
package penstock.commit

import penstock.Clock

/**
 * Counts what changes in the release queues of this JVM, for those that wait for a change in the
 * same JVM: each looks at the count, then at what it waits for, and then waits for another count.
 */
final class Changes(val clock: Clock) {
  private var number = 0L

  def count: Long = synchronized(number)

  def happened(): Unit = synchronized {
    number += 1
    notifyAll()
  }

  /** Returns when something has happened since the count was `seen`, or the limit is over. */
  def await(seen: Long, limitMs: Long): Unit = {
    clock.await(this, limitMs)(number != seen)
    ()
  }
}
