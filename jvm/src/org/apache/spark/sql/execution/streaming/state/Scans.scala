// Scala because: it marks the threads of tasks that go through Spark's iterators over state.
package org.apache.spark.sql.execution.streaming.state

import java.util.concurrent.atomic.{AtomicBoolean, AtomicInteger}

import org.apache.spark.TaskContext
import org.apache.spark.util.NextIterator

/**
 * Whether this thread goes through all of a store, as an operator does to evict: what it reads then,
 * of this store or of another, value by value, is read once and belongs in no cache.
 */
private[state] object Scans {
  private val underWay = ThreadLocal.withInitial[AtomicInteger](() => new AtomicInteger)

  def isUnderWay: Boolean = underWay.get().get > 0

  /** The same iterator; the thread counts as scanning until its end, its close, or the task's end. */
  def marked(rows: NextIterator[ByteArrayPair]): NextIterator[ByteArrayPair] = {
    val scans = underWay.get()
    val isOver = new AtomicBoolean
    // Also called by a thread that takes the rows and is not the one that counts as scanning.
    def end(): Unit = if (isOver.compareAndSet(false, true)) { scans.decrementAndGet(); () }
    scans.incrementAndGet()
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => end()))
    new NextIterator[ByteArrayPair] {
      override protected def getNext(): ByteArrayPair =
        if (rows.hasNext) rows.next()
        else {
          finished = true
          null
        }

      // Called by NextIterator at the end, too.
      override protected def close(): Unit = {
        end()
        rows.closeIfNeeded()
      }
    }
  }
}
