// Scala because: Spark's plug-in channel calls into the driver's JVM for every piece of state.
package penstock.commit.driver

import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{ExecutionContext, Future}
import scala.jdk.CollectionConverters._

import org.apache.spark.SparkEnv
import org.apache.spark.api.plugin.PluginContext

import penstock.BadCall
import penstock.commit.channel.{Answer, JavaBytes, Message, NotReleasing, Prefetched, WhenOther}

/**
 * The release queues of this driver, and the way to them from wherever state is written.
 *
 * @param endRun ends all of a run of which nothing is left to release, its queue here included
 * @param prefetched takes the counts that executors send, of runs without a queue as well
 * @param isHere whether the driver is in this JVM
 */
final class ReleaseQueues(
    endRun: String => Unit,
    prefetched: Prefetched => Unit = _ => (),
    isHere: => Boolean = ReleaseQueues.isDriver) {

  private val byRun = new ConcurrentHashMap[String, ReleaseQueue]()
  @volatile private var channel: Option[PluginContext] = None
  @volatile private var news: Option[Array[Byte] => Future[Array[Byte]]] = None
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

  /** From anywhere: told to the driver and answered by it. */
  def ask(message: Message): Answer =
    if (isDriver) receive(message)
    else {
      val to = channel.getOrElse(throw noPlugin)
      JavaBytes.decode[Answer](to.ask(JavaBytes.encode(message)).asInstanceOf[Array[Byte]])
    }

  /** From another JVM than the driver's: answered when the answer is another than the known one. */
  private[commit] def askWhenOther(question: Message, known: Answer): Future[Answer] =
    news.getOrElse(throw noPlugin)(JavaBytes.encode(WhenOther(question, known)))
      .map(JavaBytes.decode[Answer])(ExecutionContext.parasitic)

  private def noPlugin = new BadCall(
    "no_plugin",
    "an executor writes state for Penstock but has no way to tell the driver: set " +
      "spark.plugins=penstock.PenstockPlugin (penstock.attach does)")

  def isDriver: Boolean = isHere

  def driverReady(): Unit = driverHasPlugin = true

  def executorReady(
      context: PluginContext,
      openQuestions: Option[Array[Byte] => Future[Array[Byte]]]): Unit = {
    channel = Some(context)
    news = openQuestions
  }

  /** Whether executors of this application can tell the driver of their writes. */
  def canBeTold(isLocal: Boolean): Boolean = isLocal || driverHasPlugin
}

object ReleaseQueues {
  private val DriverId = "driver"

  /** The name of this JVM among the writers of state. */
  def writer: String = Option(SparkEnv.get).map(_.executorId).getOrElse(DriverId)

  def isDriver: Boolean = writer == DriverId
}
