// Scala because: threads of this JVM read state beside its tasks.
package penstock.prefetch

import java.util.concurrent.{LinkedBlockingQueue, ThreadPoolExecutor, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

/**
 * The threads that fetch and write beside the tasks. RocksDB reads one block after the other for a
 * thread, so their number is how many reads are under way at once. A thread works until `next` has
 * nothing for it.
 *
 * @param monitor the lock under which work comes: under it a thread finds nothing and counts as
 *   idle in one step, so that no work comes in between and finds nobody to wake
 */
private[prefetch] final class FetchPool(threads: Int, monitor: AnyRef, next: () => Option[FetchWork])
    extends Logging {
  private var active = 0
  private val named = new AtomicInteger
  private val pool =
    new ThreadPoolExecutor(threads, threads, 30, TimeUnit.SECONDS, new LinkedBlockingQueue())
  pool.allowCoreThreadTimeOut(true)
  pool.setThreadFactory { task =>
    val thread = new Thread(task, s"penstock-prefetch-${named.incrementAndGet()}")
    thread.setDaemon(true)
    thread
  }

  /** There may be work: one more thread looks for it, unless all do. Never waits for one. */
  def wake(): Unit = monitor.synchronized {
    if (active < threads) {
      active += 1
      try pool.execute(() => drain())
      catch { case NonFatal(_) => active -= 1 }
    }
  }

  def close(): Unit = pool.shutdown()

  private def drain(): Unit = {
    var work = nextOrLeave()
    // Work for one thread is often work for more.
    if (work.isDefined) wake()
    while (work.isDefined) {
      perform(work.get)
      work = nextOrLeave()
    }
  }

  private def nextOrLeave(): Option[FetchWork] = monitor.synchronized {
    var work = Option.empty[FetchWork]
    try work = next()
    catch { case NonFatal(e) => logWarning("no fetch of state could be begun; tasks read it themselves", e) }
    finally if (work.isEmpty) active -= 1
    work
  }

  private def perform(work: FetchWork): Unit =
    try work.perform()
    catch {
      case NonFatal(e) => logWarning("a fetch of state failed; tasks read it themselves", e)
      case e: Throwable =>
        monitor.synchronized(active -= 1)
        throw e
    }
}
