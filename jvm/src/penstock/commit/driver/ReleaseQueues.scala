// Scala because: Spark's plug-in channel calls into the driver's JVM for every piece of state.
package penstock.commit.driver

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import penstock.commit.channel.{Answer, Message, NotReleasing, Prefetched}

/**
 * The release queues of this driver.
 *
 * @param endRun ends all of a run of which nothing is left to release, its queue here included
 * @param prefetched takes the counts that executors send, of runs without a queue as well
 */
final class ReleaseQueues(endRun: String => Unit, prefetched: Prefetched => Unit = _ => ()) {

  private val byRun = new ConcurrentHashMap[String, ReleaseQueue]()
  @volatile private var driverHasPlugin = false

  /** A run begins; those of queries that have ended, with nothing left to do, are forgotten. */
  def started(queue: ReleaseQueue, isActive: String => Boolean): Unit = {
    all.filter(older => !isActive(older.query) && older.isIdle).foreach { older =>
      endRun(older.run)
    }
    byRun.put(queue.run, queue)
    ()
  }

  def ofRun(run: String): Option[ReleaseQueue] = Option(byRun.get(run))

  /** To be called by the owner's `endRun` alone, which ends all else of the run as well. */
  private[commit] def close(run: String): Unit = Option(byRun.remove(run)).foreach(_.close())

  def all: Seq[ReleaseQueue] = byRun.values.asScala.toSeq

  /** The steps of the newest run of a query that has not ended, as JSON. */
  def stepsOf(query: String): String =
    all.filter(_.query == query).maxByOption(_.startedNs).map(_.steps.json).getOrElse("{}")

  /** On the driver: the answer to a message, at once. */
  def receive(message: Message): Answer = {
    message match {
      case counts: Prefetched => prefetched(counts)
      case _ =>
    }
    ofRun(message.run).map(_.receive(message)).getOrElse(NotReleasing)
  }

  def driverReady(): Unit = driverHasPlugin = true

  /** Whether executors of this application can tell the driver of their writes. */
  def canBeTold(isLocal: Boolean): Boolean = isLocal || driverHasPlugin
}
