// Scala because: executors, which run no Python of ours, append the state of their tasks to the
// log.
package penstock.commit.executor

import java.nio.file.Files
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.AtomicBoolean

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import penstock.{Failpoint, Fenced}
import penstock.commit.{Retrying, Work}
import penstock.commit.channel.{MadeDurable, NotReleasing, Standing}
import penstock.settings.{CommitSettings, Connection}
import penstock.wire.{EntryPlaces, FileEntry}

/**
 * Appends the pieces of a run to the log. While one request is on its way the next ones gather, so
 * that a batch of many stores costs a few requests and not one each.
 */
private[commit] final class Appender(resources: ExecutorParts) {
  private val byRun = new ConcurrentHashMap[String, Appending]()

  def take(piece: HeldPiece, standing: Standing): Unit = {
    val appending =
      byRun.computeIfAbsent(piece.run, run => new Appending(run, piece.conf, standing))
    if (!resources.jointAppends.offer(piece, standing, appending)) appending.add(piece)
  }

  /** The runs of which pieces were appended. */
  def runs: Set[String] = byRun.keySet.asScala.toSet

  /** Nothing more of the run is released. */
  def forgetRun(run: String): Unit = { byRun.remove(run); () }

  private final class Appending(run: String, conf: Configuration, standing: Standing)
      extends Retrying(new CommitSettings(conf), resources.clock)
      with StateAppender {
    private val queue = new ConcurrentLinkedQueue[HeldPiece]()
    private val isUnderWay = new AtomicBoolean(false)
    private def connection = Connection.of(conf).get
    private val commitSettings = new CommitSettings(conf)

    override def name: String = s"appending state of query ${standing.query} to the log"

    override def add(piece: HeldPiece): Unit = {
      queue.add(piece)
      begin()
    }

    /** What is left to do is no work for the thread of a task, which has its own to end. */
    override def appendedWithRows(
        piece: HeldPiece,
        files: Seq[StateFileBytes],
        entries: Seq[Long],
        start: Option[Long],
        tookNs: Long): Unit =
      resources.pools.appenders(connection.url, conf).submit(new Work {
        override def name: String = Appending.this.name

        override def perform(): Unit = {
          Failpoint.reach("before_state", standing.query, piece.stateFile.batch)
          try appended(Seq(piece), files.map(_.path).zip(entries).toMap, start, tookNs)
          catch { case NonFatal(_) => add(piece) }
        }
      })

    private def begin(): Unit = if (isUnderWay.compareAndSet(false, true)) {
      resources.pools.appenders(connection.url, conf).submit(new Turn)
    }

    /** One turn ends when the queue is empty; what is in it stays there until it is durable. */
    private final class Turn extends Work {
      override def name: String = Appending.this.name

      override def perform(): Unit = {
        while (!queue.isEmpty) Appending.this.perform()
        isUnderWay.set(false)
        if (!queue.isEmpty) begin()
      }
    }

    /** One request: each that gets through is told of, and counts as progress. */
    override protected def once(): Unit = {
      val (current, superseded) = queue.asScala.toSeq.partition(_.state.isCurrent)
      superseded.foreach(queue.remove(_))
      current.map(_.stateFile.batch).minOption.foreach { batch =>
        val ofBatch = current.filter(_.stateFile.batch == batch)
        append(batch, standing.limits.firstRequest(ofBatch)(sizesOf))
      }
    }

    private def sizesOf(piece: HeldPiece): Seq[(String, Long)] =
      piece.files.values.toSeq.filter(_.local.isDefined).map(f => f.stateFile.relative -> f.bytes)

    private def append(batch: Long, pieces: Seq[HeldPiece]): Unit = {
      Failpoint.reach("before_state", standing.query, batch)
      val start = resources.clock.nanos
      val files = pieces.flatMap(Appender.filesOf)
      val places = if (files.isEmpty) EntryPlaces(Nil, Nil, None) else appendedAt(batch, files)
      val lsnOf = files.map(_.path).zip(places.entries).toMap
      appended(pieces, lsnOf, places.start, resources.clock.nanos - start)
      pieces.foreach(queue.remove(_))
    }

    private def appendedAt(batch: Long, files: Seq[StateFileBytes]): EntryPlaces =
      resources.gateways.to(connection).queries.appendFiles(
        standing.query,
        standing.instance.get,
        batch,
        files.map(file => file.path -> file.bytes),
        isEarly = commitSettings.earlyAnswers(resources.heldState.heldBytes))

    /** The log has all files of these pieces; with a `start` it has not synced them yet. */
    private def appended(
        pieces: Seq[HeldPiece],
        lsnOf: Map[String, Long],
        start: Option[Long],
        tookNs: Long): Unit = {
      pieces.headOption.foreach { piece =>
        Failpoint.reach("after_state", standing.query, piece.stateFile.batch)
      }
      val durable = pieces.map { piece =>
        piece.stepsNs("append state") = tookNs
        piece.durable(
          piece.files.keys.toSeq.flatMap(path => lsnOf.get(path).map(FileEntry(path, _, start))))
      }
      resources.toDriver.ask(MadeDurable(run, durable)) match {
        case now: Standing =>
          val event: HeldPieceEvent =
            if (start.isEmpty) HeldPieceEvent.DurableInLog else HeldPieceEvent.AppliedInLog
          pieces.foreach(resources.heldState.tell(_, event))
          resources.heldState.batchesCopied(run, now)
          pieces.foreach(resources.copier.placeLater)
        case NotReleasing => resources.forgetRun(run)
      }
    }

    override protected def giveUp(e: Throwable): Unit = {
      val reason = s"$name failed: ${e.getMessage}. The query goes on from the last durable batch " +
        "when restarted"
      logError(reason, e)
      resources.questions.giveUp(run, reason, e.isInstanceOf[Fenced])
      queue.clear()
    }
  }
}

private[executor] object Appender {

  /** The files of a piece, read from where they wait. */
  def filesOf(piece: HeldPiece): Seq[StateFileBytes] =
    for (file <- piece.files.values.toSeq; local <- file.local)
      yield StateFileBytes(file.stateFile.relative, Files.readAllBytes(local.toPath))
}
