// Scala because: pools of JVM threads flush, upload and copy the state of every task.
package penstock.commit

import java.util.concurrent.{ConcurrentHashMap, Executors, LinkedBlockingQueue, ThreadFactory, ThreadPoolExecutor, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging

/** Work that may be done twice: it looks first at what is done already. */
trait Work {
  def name: String

  /** Does the work and says so to whoever waits; throws only when its thread must end. */
  def perform(): Unit
}

/**
 * A bounded pool shared by all queries of this JVM, first come first served.
 *
 * A thread that ends in the middle of its work, whatever the reason, would leave a query waiting
 * for ever. A heartbeat looks for work whose thread is gone and hands it out again.
 */
final class Workers(label: String, threads: Int) extends Logging {
  private val underWay = new ConcurrentHashMap[Work, Thread]()
  private val pool =
    new ThreadPoolExecutor(threads, threads, 60, TimeUnit.SECONDS, new LinkedBlockingQueue())
  private val heartbeat =
    Executors.newSingleThreadScheduledExecutor(Workers.daemons(s"penstock-$label-heartbeat"))
  pool.setThreadFactory(Workers.daemons(s"penstock-$label"))
  pool.allowCoreThreadTimeOut(true)
  heartbeat.scheduleWithFixedDelay(
    () => resume(),
    Workers.HeartbeatMs,
    Workers.HeartbeatMs,
    TimeUnit.MILLISECONDS)

  def submit(work: Work): Unit = pool.execute { () =>
    underWay.put(work, Thread.currentThread())
    work.perform()
    underWay.remove(work)
    ()
  }

  private def resume(): Unit = underWay.asScala.foreach { case (work, thread) =>
    if (!thread.isAlive && underWay.remove(work, thread)) {
      logWarning(s"the thread that was to do '${work.name}' has ended; doing it again")
      submit(work)
    }
  }
}

object Workers {
  private val HeartbeatMs = 500L

  def daemons(label: String): ThreadFactory = {
    val count = new AtomicInteger()
    task => {
      val thread = new Thread(task, s"$label-${count.incrementAndGet()}")
      thread.setDaemon(true)
      thread
    }
  }
}
