// Scala because: executors send what the caches of their state stores counted, behind their tasks.
package penstock.commit.executor

import java.util.concurrent.{ConcurrentHashMap, LinkedBlockingQueue, RejectedExecutionException, ThreadPoolExecutor, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.commit.Workers
import penstock.commit.channel.{Prefetched, WayToDriver}
import penstock.prefetch.StatePrefetch

/**
 * Sends the driver what the caches of this JVM counted, one message for all tasks of a run that
 * end meanwhile, so that no task waits for it. The driver's own JVM has no need of it.
 */
final class PrefetchReports(prefetch: StatePrefetch, toDriver: WayToDriver) extends Logging {
  private val dueRuns = ConcurrentHashMap.newKeySet[String]()
  private val sender = new ThreadPoolExecutor(
    1, 1, 60, TimeUnit.SECONDS, new LinkedBlockingQueue(), Workers.daemons("penstock-prefetch-counts"))
  sender.allowCoreThreadTimeOut(true)

  /** A task of the run has ended. Never blocks; once this is closed nothing is sent. */
  def due(run: String): Unit =
    if (!sender.isShutdown && dueRuns.add(run)) {
      try sender.execute(() => send(run))
      catch { case _: RejectedExecutionException => }
    }

  private def send(run: String): Unit = {
    dueRuns.remove(run)
    try {
      val counts = prefetch.counts(run).filterNot(_.isQuiet)
      if (counts.nonEmpty) toDriver.ask(Prefetched(run, counts))
      ()
    } catch { case NonFatal(e) => logDebug(s"counts of run $run did not reach the driver", e) }
  }

  private[commit] def close(): Unit = sender.shutdown()
}
