// Scala because: threads of this JVM read RocksDB, which ends the JVM if it is closed meanwhile.
package penstock.prefetch

/**
 * Who reads or writes a RocksDB beside its task. Only those that were let in may, and `shut`
 * returns when the last of them has left: then it can be closed.
 */
private[prefetch] final class NativeReads {
  private var inside = 0
  private var isOpen = false

  /** Whether the caller may read now; if so, it must leave. */
  def tryEnter(): Boolean = synchronized {
    val isLetIn = isOpen
    if (isLetIn) inside += 1
    isLetIn
  }

  def leave(): Unit = synchronized {
    inside -= 1
    if (inside == 0) notifyAll()
  }

  def open(): Unit = synchronized { isOpen = true }

  /** Lets nobody in any more, and waits for those inside; an interrupt is kept for later. */
  def shut(): Unit = {
    var isInterrupted = false
    synchronized {
      isOpen = false
      while (inside > 0) {
        try wait()
        catch { case _: InterruptedException => isInterrupted = true }
      }
    }
    if (isInterrupted) Thread.currentThread().interrupt()
  }
}
