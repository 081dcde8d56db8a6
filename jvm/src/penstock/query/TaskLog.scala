// Scala because: the sink seals a batch from a callback of Spark, with the answers of all its
// tasks.
package penstock.query

import java.util.concurrent.ConcurrentHashMap

import penstock.{Clock, Fenced}
import penstock.client.Gateway
import penstock.wire.{FileEntry, LogLimits, Snapshot, StreamInfo, Write}

/**
 * The task log of a query as one run of it sees it: the run's instance number, and what the run
 * knows of the batches under way. The sink seals a batch here; it is marked when it may commit.
 */
final class TaskLog(
    gateway: Gateway,
    val query: String,
    val instance: Long,
    val limits: LogLimits,
    clock: Clock) {
  import TaskLog._

  @volatile private var confirmedAtNs = clock.nanos
  private val sealedBatches = new ConcurrentHashMap[Long, Sealed]()
  private val outputs = new ConcurrentHashMap[String, StreamInfo]()

  /** The address of the server that has the log. */
  def server: String = gateway.url

  /** Whether the run took its instance number at this server: another one does not know it. */
  def isAt(url: String): Boolean = server == url

  /** The output stream, asked for once per run. */
  def stream(name: String)(ensure: => StreamInfo): StreamInfo =
    outputs.computeIfAbsent(name, _ => ensure)

  /** The winners of a batch, and how far it reads each stream. */
  def seal(batch: Long, writes: Seq[Write], mode: String, positions: Map[String, Long]): Unit = {
    sealedBatches.put(batch, Sealed(writes, mode, positions))
    ()
  }

  def isSealed(batch: Long): Boolean = sealedBatches.containsKey(batch)

  /** The server has just answered this run as the current instance. */
  def confirmed(): Unit = confirmedAtNs = clock.nanos

  /** Throws Fenced if a newer run has taken over, unless that was ruled out a moment ago. */
  def ensureCurrent(): Unit =
    if (clock.nanos - confirmedAtNs > ConfirmedForNs) refuseIfTakenOver()

  /** Throws Fenced if a newer run has taken over. */
  def refuseIfTakenOver(): Unit = {
    val now = gateway.queries.instanceOf(query)
    if (now != instance) {
      throw new Fenced(s"query $query was taken over: its instance is $now, this run is $instance")
    }
    confirmed()
  }

  /** Appends checkpoint files of a batch; nobody's until the marker names them. */
  def put(batch: Long, files: Seq[(String, Array[Byte])]): Seq[FileEntry] =
    files.map(_._1).zip(gateway.queries.putFiles(query, instance, batch, files)).map {
      case (path, lsn) => FileEntry(path, lsn)
    }

  def read(file: FileEntry): Array[Byte] = gateway.queries.readFile(query, file.entry)

  /**
   * Makes the sealed batch visible; returns when the marker is durable. May be called again with the
   * same, by whoever does not know whether it was. The log may forget what the location has: all
   * batches up to `copied`.
   */
  def mark(
      batch: Long,
      commit: Array[Byte],
      files: Seq[FileEntry],
      copied: Long,
      snapshots: Option[Seq[Snapshot]] = None,
      offsets: Option[Array[Byte]] = None): Unit = {
    val batchSeal = sealedBatches.get(batch)
    val known = Option.when(copied >= 0)(copied)
    gateway.queries
      .mark(query, instance, batch, batchSeal.writes, Some(commit), batchSeal.positions, batchSeal.mode, files,
        known, snapshots, offsets)
    ()
  }

  /** A batch that is marked for good: `mark` is not called with it again. */
  def forget(batch: Long): Unit = { sealedBatches.remove(batch); () }
}

private object TaskLog {

  /** Admission is asked right before offsets are written; a second question adds nothing. */
  val ConfirmedForNs: Long = 1000L * 1000 * 1000

  final case class Sealed(writes: Seq[Write], mode: String, positions: Map[String, Long])
}
