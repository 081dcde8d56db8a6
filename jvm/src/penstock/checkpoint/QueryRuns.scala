package penstock.checkpoint

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.penstock.SparkInternals

import penstock.{BadCall, Fenced}
import penstock.client.{Gateway, StreamInfo, Write}

/**
 * One run of one query on this driver: its instance number, and what it knows of the batch under
 * way. The sink seals a batch here, the file manager marks it.
 */
final class QueryRun(gateway: Gateway, val query: String, val run: String, val instance: Long) {
  import QueryRun._

  @volatile private var confirmedAtNs = System.nanoTime()
  private val sealedBatches = new ConcurrentHashMap[Long, Sealed]()
  private val positions = new ConcurrentHashMap[String, Long]()
  private val outputs = new ConcurrentHashMap[String, StreamInfo]()

  /** The batch being planned reads `stream` up to `position`. */
  def reading(stream: String, position: Long): Unit = { positions.put(stream, position); () }

  /** The output stream, asked for once per run. */
  def stream(name: String)(ensure: => StreamInfo): StreamInfo =
    outputs.computeIfAbsent(name, _ => ensure)

  def seal(batch: Long, writes: Seq[Write], mode: String): Unit = {
    sealedBatches.put(batch, Sealed(writes, mode))
    ()
  }

  def isSealed(batch: Long): Boolean = sealedBatches.containsKey(batch)

  /** The server has just answered this run as the current instance. */
  def confirmed(): Unit = confirmedAtNs = System.nanoTime()

  /** Throws Fenced if a newer run has taken over, unless that was ruled out a moment ago. */
  def ensureCurrent(): Unit =
    if (System.nanoTime() - confirmedAtNs > ConfirmedForNs) refuseIfTakenOver()

  /** Throws Fenced if a newer run has taken over. */
  def refuseIfTakenOver(): Unit = {
    val now = gateway.queries.instanceOf(query)
    if (now != instance) {
      throw new Fenced(s"query $query was taken over: its instance is $now, this run is $instance")
    }
    confirmed()
  }

  /** Makes the sealed batch visible; returns when the marker is durable. */
  def mark(batch: Long, commit: Array[Byte]): Unit = {
    import scala.jdk.CollectionConverters._
    val what = sealedBatches.get(batch)
    gateway.queries
      .mark(query, instance, batch, what.writes, Some(commit), positions.asScala.toMap, what.mode)
    sealedBatches.remove(batch)
    ()
  }
}

private object QueryRun {

  /** Admission is asked right before offsets are written; a second question adds nothing. */
  val ConfirmedForNs: Long = 1000L * 1000 * 1000

  final case class Sealed(writes: Seq[Write], mode: String)
}

/** The runs of this driver: source, sink and file manager of a query meet here. */
object QueryRuns {
  private val byQuery = new ConcurrentHashMap[String, QueryRun]()
  private val byRoot = new ConcurrentHashMap[String, QueryRun]()

  def started(checkpointRoot: String, run: QueryRun): Unit = {
    byQuery.put(run.query, run)
    byRoot.put(checkpointRoot, run)
    ()
  }

  def ofCheckpoint(root: String): Option[QueryRun] = Option(byRoot.get(root))

  def ofQuery(query: String): QueryRun = Option(byQuery.get(query)).getOrElse(
    throw new BadCall(
      "no_file_manager",
      "the Penstock sink commits through its checkpoint file manager, which this session does " +
        "not have: set spark.sql.streaming.checkpointFileManagerClass=" +
        s"${classOf[MarkerFileManager].getName} (penstock.attach does)"))

  /** The run of the query whose stream thread is calling. */
  def ofThisThread: Option[QueryRun] =
    SparkInternals.streamThread.flatMap { case (query, _) => Option(byQuery.get(query)) }
}
