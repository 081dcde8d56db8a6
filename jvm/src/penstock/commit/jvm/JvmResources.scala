// Scala because: Spark makes our classes by name in each JVM, and they find what is open here.
package penstock.commit.jvm

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent

import penstock.Clock
import penstock.client.Gateways
import penstock.commit.{Changes, WorkerPools, Workers}
import penstock.commit.channel.WayToDriver
import penstock.commit.driver.{OpenQuestions, ReleaseQueues}
import penstock.commit.executor._
import penstock.devices.{DevicePlans, InterpreterTrial, Machines, WorkerReadiness}
import penstock.eviction.ScansByAttempt
import penstock.observe.{BatchRecords, PlanNotes, TaskStamps}
import penstock.prefetch.{ActiveCandidates, AheadPages, BatchFacts, DeclaredDelay, Lookaheads, Prefetching, RelayedHints}
import penstock.wire.Json

/**
 * All that the plug-in has open in this JVM, and the one owner of it. Spark makes file managers and
 * state store providers by their names, so these find it by `JvmResources.here`: whoever comes
 * first opens it, and the plug-in closes it with the application.
 *
 * What belongs to a run ends with it:
 *
 *   - on the driver when its query has terminated and nothing of it is left to release (`endRun`);
 *   - on an executor, which nobody tells, when it asks the driver about the run and hears that
 *     nothing of it is released any more. A heartbeat asks about runs that nobody else asks about.
 */
final class JvmResources private (val clock: Clock) extends ExecutorParts with Logging {
  import JvmResources._

  val gateways = new Gateways(clock)
  val changes = new Changes(clock)
  val pools = new WorkerPools
  val localFolder = new LocalFolder
  val releases = new ReleaseQueues(
    endRun,
    report =>
      if (closersByRun.containsKey(report.run)) {
        activeCandidates.counted(report.run, report.counts)
      })
  val toDriver = new WayToDriver(releases.receive)
  val openQuestions = new OpenQuestions(changes, releases.receive)
  val news = new DriverNews(toDriver, changes)
  val steps = new StepTimes(clock, toDriver)
  val questions = new DriverQuestions(this)
  val heldState = new HeldState(this)
  val copier = new Copier(this)
  private[commit] val appender = new Appender(this)
  val jointAppends = new JointAppends
  val taskStamps = new TaskStamps(() => clock.wallMs)
  val batches = new BatchRecords(gateways.requests, taskStamps)
  val planNotes = new PlanNotes
  val devicePlans = new DevicePlans
  val machines = new Machines
  val interpreter = new InterpreterTrial(clock)
  val workerReadiness = new WorkerReadiness(interpreter, machines)
  val prefetch = new Prefetching(clock)
  val lookaheads = new Lookaheads
  val relayed = new RelayedHints
  val aheadPages = new AheadPages(AheadPages.BytesMax)
  val declaredDelay = new DeclaredDelay
  val parts = new JvmParts
  val prefetchReports = new PrefetchReports(prefetch, toDriver)
  val activeCandidates = new ActiveCandidates(
    prefetch.counts,
    lookaheads,
    BatchFacts(batches.hasFailedAttempts, batches.shuffleBytes),
    relayed)
  val evictionScans = new ScansByAttempt
  private val closersByRun = new ConcurrentHashMap[String, () => Unit]()
  @volatile private var watched: Option[SparkContext] = None
  @volatile private var isClosed = false
  Workers.daemons("penstock-heartbeat").newThread(() => beat()).start()

  /** `close` is called once the run has ended on this driver, or the application has. */
  def atEndOf(run: String)(close: => Unit): Unit = {
    closersByRun.put(run, () => close)
    ()
  }

  /** Runs of this application end when their queries terminate. */
  def watch(context: SparkContext): Unit = synchronized {
    if (!watched.contains(context)) {
      context.addSparkListener(batches)
      context.addSparkListener(new TerminationListener(this))
      watched = Some(context)
    }
  }

  /** A query has terminated: its run ends as soon as all that it computed is released. */
  def queryTerminated(run: String): Unit =
    releases.ofRun(run).fold(endRun(run))(_.whenAtRest(() => endRun(run)))

  /** Nothing more of the run is released on this driver, and nothing of it stays open. */
  def endRun(run: String): Unit = {
    releases.close(run)
    Option(closersByRun.remove(run)).foreach(_())
    planNotes.forgetRun(run)
    devicePlans.forgetRun(run)
    activeCandidates.endRun(run)
    forgetRun(run)
  }

  /** Drops the state that this JVM holds of a run of which nothing more becomes durable. */
  def forgetRun(run: String): Unit = {
    heldState.forgetRun(run)
    appender.forgetRun(run)
    copier.forgetRun(run)
    news.forgetRun(run)
    lookaheads.forgetRun(run)
    prefetch.forgetRun(run)
    parts.forgetRun(run)
    changes.happened()
  }

  /** Forgets the runs of which the driver releases nothing any more. */
  def sweep(): Unit = {
    runsHere.filterNot(questions.goesOn).foreach(forgetRun)
    prefetch.runsWithoutStore.filterNot(questions.goesOn).foreach(prefetch.forgetRun)
  }

  /** The runs of which an executor has anything. */
  private def runsHere: Set[String] = heldState.runs ++ appender.runs ++ copier.runs ++ news.runs

  /** How much is open, by kind: nothing of it is left when all runs have ended. */
  def holdings: Map[String, Long] = Map(
    "runs of queries" -> closersByRun.size.toLong,
    "release queues" -> releases.all.size.toLong,
    "runs with state" -> heldState.runs.size.toLong,
    "bytes of state" -> heldState.heldBytes,
    "runs with an appender" -> appender.runs.size.toLong,
    "batches remembered" -> batches.size.toLong,
    "runs with notes" -> planNotes.size.toLong,
    "runs with plans" -> devicePlans.size.toLong,
    "runs waited for" -> copier.runs.size.toLong,
    "bytes of cached state" -> prefetch.bytes,
    "runs known" -> news.runs.size.toLong,
    "bytes read ahead" -> aheadPages.bytes,
    "runs with prefetching" -> activeCandidates.size.toLong,
    "tasks with scans for eviction" -> evictionScans.size.toLong,
    "tasks with a joint append" -> jointAppends.size.toLong,
    "open questions" -> openQuestions.size.toLong)

  private[commit] def close(): Unit = {
    isClosed = true
    (closersByRun.keySet.asScala.toSet ++ releases.all.map(_.run)).foreach(endRun)
    runsHere.foreach(forgetRun)
    openQuestions.close()
    parts.close()
    interpreter.close()
    prefetchReports.close()
    pools.close()
    prefetch.close()
    localFolder.close()
    gateways.close()
  }

  private def beat(): Unit = {
    var sweepAt = clock.deadline(SweepMs)
    while (!isClosed) {
      clock.sleepMs(HeartbeatMs)
      try {
        pools.resume()
        heldState.startLate()
        if (sweepAt.isOver) {
          sweep()
          sweepAt = clock.deadline(SweepMs)
        }
      } catch { case NonFatal(e) => logWarning("a heartbeat of the plug-in failed", e) }
    }
  }
}

object JvmResources {
  private val HeartbeatMs = 500L
  private val SweepMs = 10000L
  @volatile private var opened: Option[JvmResources] = None

  /** Those of this JVM. */
  def here: JvmResources = opened.getOrElse(synchronized {
    opened.getOrElse {
      val fresh = new JvmResources(Clock.System)
      opened = Some(fresh)
      fresh
    }
  })

  /** Closes what is open; whoever asks after that opens it anew. */
  def close(): Unit = {
    val closing = synchronized {
      val before = opened
      opened = None
      before
    }
    closing.foreach(_.close())
  }

  /** The steps of the newest run of a query on this driver, as JSON. */
  def stepsJson(query: String): String = here.releases.stepsOf(query)

  /** What Spark reported of the last batches of a query on this driver, as JSON. */
  def batchesJson(query: String): String = here.batches.json(query)

  /** What rules of the plug-in say about the plan of a run on this driver, as JSON. */
  def planNotesJson(run: String): String = here.planNotes.json(run)

  /** What the state of a run was read from, and where its hints come from, as JSON. */
  def prefetchJson(run: String): String = here.activeCandidates.json(run)

  /** Reads that are slow by the settings wait so long from now on. Returns an empty text: it is called by name. */
  def declareDelay(ms: String): String = {
    here.declaredDelay.declare(ms.toLong)
    ""
  }

  /** The holdings of this JVM as JSON, for tests. */
  def holdingsJson: String = {
    val all = Json.createObjectNode()
    here.holdings.foreach { case (kind, number) => all.put(kind, number) }
    all.toString
  }
}

/** Tells of queries that have terminated, from whatever session they were started. */
private final class TerminationListener(resources: JvmResources) extends SparkListener {
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case ended: QueryTerminatedEvent => resources.queryTerminated(ended.runId.toString)
    case _ =>
  }
}
