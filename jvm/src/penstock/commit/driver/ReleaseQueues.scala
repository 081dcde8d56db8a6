// Scala because: Spark's plug-in channel calls into the driver's JVM for every piece of state.
package penstock.commit.driver

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkEnv
import org.apache.spark.api.plugin.PluginContext

import penstock.BadCall
import penstock.commit.Workers
import penstock.commit.channel.{Answer, JavaBytes, Message, NotReleasing}
import penstock.settings.CommitSettings

/** The release queues of this driver, and the way to them from wherever state is written. */
object ReleaseQueues {
  private val DriverId = "driver"
  private val byRun = new ConcurrentHashMap[String, ReleaseQueue]()
  @volatile private var channel: Option[PluginContext] = None
  @volatile private var driverHasPlugin = false
  private val pools = new ConcurrentHashMap[String, Workers]()

  /** A run begins; those of queries that have ended, with nothing left to do, are forgotten. */
  def started(queue: ReleaseQueue, isActive: String => Boolean): Unit = {
    all.filter(older => !isActive(older.query) && older.isIdle).foreach(older => ended(older.run))
    byRun.put(queue.run, queue)
    ()
  }

  def ofRun(run: String): Option[ReleaseQueue] = Option(byRun.get(run))

  def ended(run: String): Unit = Option(byRun.remove(run)).foreach(_.close())

  def all: Seq[ReleaseQueue] = byRun.values.asScala.toSeq

  /** The steps of the newest run of a query, as JSON; for tests and benchmarks. */
  def steps(query: String): String =
    all.filter(_.query == query).maxByOption(_.startedNs).map(_.steps.json).getOrElse("{}")

  /** On the driver: the answer to a message, at once. */
  def receive(message: Message): Answer =
    ofRun(message.run).map(_.receive(message)).getOrElse(NotReleasing)

  /** From anywhere: told to the driver and answered by it. */
  def ask(message: Message): Answer =
    if (isDriver) receive(message)
    else
      channel
        .map(to => JavaBytes.decode[Answer](to.ask(JavaBytes.encode(message)).asInstanceOf[Array[Byte]]))
        .getOrElse(throw new BadCall(
          "no_plugin",
          "an executor writes state for Penstock but has no way to tell the driver: set " +
            s"spark.plugins=penstock.PenstockPlugin (penstock.attach does)"))

  def driverReady(): Unit = driverHasPlugin = true

  def executorReady(context: PluginContext): Unit = channel = Some(context)

  /** Whether executors of this application can tell the driver of their writes. */
  def canBeTold(isLocal: Boolean): Boolean = isLocal || driverHasPlugin

  /** The name of this JVM among the writers of state. */
  def writer: String = Option(SparkEnv.get).map(_.executorId).getOrElse(DriverId)

  /** What a batch waits for to be committed: in `store`, the log or the store of a location. */
  def releasers(store: String, conf: Configuration): Workers = pool(s"release-$store", conf)

  /** What follows a commit: in a pool of its own, as a slow location must delay no commit. */
  def followers(store: String, conf: Configuration): Workers = pool(s"follow-$store", conf)

  /** Copies of state files. */
  def copiers(conf: Configuration): Workers = pool("copy", conf, CopiersPerThread)

  /** Uploads of snapshots, which commits wait for. */
  def uploaders(conf: Configuration): Workers = pool("upload", conf)

  /** Flushes and LSM checkpoints. */
  def committers(conf: Configuration): Workers = pool("commit", conf)

  private def pool(label: String, conf: Configuration, times: Int = 1): Workers =
    pools.computeIfAbsent(label, _ => new Workers(label, new CommitSettings(conf).threads * times))

  /** Copies wait for a store far more than they compute. */
  private val CopiersPerThread = 4

  private def isDriver: Boolean = writer == DriverId
}
