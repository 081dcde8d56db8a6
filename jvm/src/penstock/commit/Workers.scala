// Scala because: pools of JVM threads flush, upload and copy the state of every task.
package penstock.commit

import java.util.concurrent.{ConcurrentHashMap, Executor, ExecutorService, Executors, LinkedBlockingQueue, ThreadFactory, ThreadPoolExecutor, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.spark.internal.Logging

import penstock.settings.CommitSettings

/** Work that may be done twice: it looks first at what is done already. */
trait Work {
  def name: String

  /** Does the work and says so to whoever waits; throws only when its thread must end. */
  def perform(): Unit
}

/**
 * A bounded pool shared by queries of this JVM, first come first served: by all of them, or by
 * those whose work waits for the same store or server.
 *
 * A thread that ends in the middle of its work, whatever the reason, would leave a query waiting
 * for ever: `resume`, which a heartbeat calls, looks for work whose thread is gone and hands it out
 * again.
 */
final class Workers(label: String, threads: Int) extends Logging {
  private val underWay = new ConcurrentHashMap[Work, Thread]()
  private val pool =
    new ThreadPoolExecutor(threads, threads, 60, TimeUnit.SECONDS, new LinkedBlockingQueue())
  pool.setThreadFactory(Workers.daemons(s"penstock-$label"))
  pool.allowCoreThreadTimeOut(true)

  def submit(work: Work): Unit = pool.execute { () =>
    underWay.put(work, Thread.currentThread())
    work.perform()
    underWay.remove(work)
    ()
  }

  /** Takes no more work; what it has is done. */
  private[commit] def close(): Unit = pool.shutdown()

  private[commit] def resume(): Unit = underWay.asScala.foreach { case (work, thread) =>
    if (!thread.isAlive && underWay.remove(work, thread)) {
      logWarning(s"the thread that was to do '${work.name}' has ended; doing it again")
      submit(work)
    }
  }
}

/** The pools of one JVM, each made when it is first asked for. */
final class WorkerPools {
  import WorkerPools._

  private val byLabel = new ConcurrentHashMap[String, Workers]()
  private val preparersByStore = new ConcurrentHashMap[String, ExecutorService]()

  /** What a batch waits for to be committed: in `store`, a server's log or the store of a location. */
  def releasers(store: String, conf: Configuration): Workers = pool(s"release-$store", conf)

  /** What follows a commit: in a pool of its own, as a slow location must delay no commit. */
  def followers(store: String, conf: Configuration): Workers = pool(s"follow-$store", conf)

  /** Copies of state files to the store of a location. */
  def copiers(store: String, conf: Configuration): Workers = pool(s"copy-$store", conf, CopiersPerThread)

  /** Appends of state files to the log of a server. */
  def appenders(server: String, conf: Configuration): Workers = pool(s"append-$server", conf)

  /** Uploads of snapshots to the store of a location, which commits wait for. */
  def uploaders(store: String, conf: Configuration): Workers = pool(s"upload-$store", conf)

  /** Flushes and LSM checkpoints: local work, which no store or server holds up. */
  def committers(conf: Configuration): Workers = pool("commit", conf)

  /** Few threads for all queries on a store: a batch has two small files to prepare. */
  def preparers(store: String): Executor = preparersByStore.computeIfAbsent(
    store,
    _ => Executors.newFixedThreadPool(PreparersPerStore, Workers.daemons(s"penstock-prepare-$store")))

  private[commit] def resume(): Unit = byLabel.values.asScala.foreach(_.resume())

  private[commit] def close(): Unit = {
    byLabel.values.asScala.foreach(_.close())
    preparersByStore.values.asScala.foreach(_.shutdown())
  }

  private def pool(label: String, conf: Configuration, times: Int = 1): Workers =
    byLabel.computeIfAbsent(label, _ => new Workers(label, new CommitSettings(conf).threads * times))
}

private object WorkerPools {

  /** Copies wait for a store far more than they compute. */
  val CopiersPerThread = 4
  val PreparersPerStore = 4
}

object Workers {
  def daemons(label: String): ThreadFactory = {
    val count = new AtomicInteger()
    task => {
      val thread = new Thread(task, s"$label-${count.incrementAndGet()}")
      thread.setDaemon(true)
      thread
    }
  }
}
