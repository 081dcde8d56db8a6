// Scala because: executors, which run no Python of ours, append the state of their tasks to the
// log.
package penstock.commit.executor

import java.nio.file.Files
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.AtomicBoolean

import scala.jdk.CollectionConverters._

import penstock.{Failpoint, Fenced}
import penstock.client.Gateway
import penstock.commit.{Retrying, Work}
import penstock.commit.channel.{MadeDurable, NotReleasing, Standing}
import penstock.commit.driver.ReleaseQueues
import penstock.settings.{CommitSettings, Connection}
import penstock.wire.FileEntry

/**
 * Appends the pieces of a run to the log. While one request is on its way the next ones gather, so
 * that a batch of many stores costs a few requests and not one each.
 */
private[commit] object Appender {
  private val byRun = new ConcurrentHashMap[String, Appending]()

  def take(piece: HeldPiece, standing: Standing): Unit =
    byRun.computeIfAbsent(piece.run, _ => new Appending(piece, standing)).add(piece)

  private def ended(run: String): Unit = { byRun.remove(run); () }

  private final class Appending(first: HeldPiece, standing: Standing)
      extends Retrying(new CommitSettings(first.conf)) {
    private val queue = new ConcurrentLinkedQueue[HeldPiece]()
    private val isUnderWay = new AtomicBoolean(false)

    override def name: String = s"appending state of query ${standing.query} to the log"

    def add(piece: HeldPiece): Unit = {
      queue.add(piece)
      begin()
    }

    private def begin(): Unit = if (isUnderWay.compareAndSet(false, true)) {
      ReleaseQueues.copiers(first.conf).submit(new Turn)
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

    override protected def once(): Unit = {
      val all = queue.asScala.toSeq
      all.filter(HeldState.isSuperseded).foreach(queue.remove(_))
      all.filterNot(HeldState.isSuperseded).groupBy(_.what.batch).toSeq.sortBy(_._1).foreach {
        case (batch, pieces) => append(batch, pieces)
      }
    }

    private def append(batch: Long, pieces: Seq[HeldPiece]): Unit = {
      Failpoint.reach("before_state", standing.query, batch)
      val start = System.nanoTime()
      val files = for (piece <- pieces; member <- piece.members.values; local <- member.local)
        yield member.what.relative -> Files.readAllBytes(local.toPath)
      val gateway = Gateway.to(Connection.of(first.conf).get)
      val entries =
        if (files.isEmpty) Nil
        else gateway.queries.putFiles(standing.query, standing.instance.get, batch, files)
      val lsnOf = files.map(_._1).zip(entries).toMap
      val tookNs = System.nanoTime() - start
      Failpoint.reach("after_state", standing.query, batch)
      val durable = pieces.map { piece =>
        piece.steps("append state") = tookNs
        DurablePiece.of(
          piece,
          piece.members.keys.toSeq.flatMap(path => lsnOf.get(path).map(FileEntry(path, _))))
      }
      ReleaseQueues.ask(MadeDurable(first.run, durable)) match {
        case now: Standing =>
          pieces.foreach(HeldState.durable(_, isInLocation = false))
          HeldState.forgetCopied(first.run, now)
          pieces.foreach(Copier.placeLater)
        case NotReleasing =>
          HeldState.forgetRun(first.run)
          ended(first.run)
      }
      pieces.foreach(queue.remove(_))
    }

    override protected def giveUp(e: Throwable): Unit = {
      val reason = s"$name failed: ${e.getMessage}. The query goes on from the last durable batch " +
        "when restarted"
      logError(reason, e)
      DriverQuestions.giveUp(first.run, reason, e.isInstanceOf[Fenced])
      queue.clear()
    }
  }
}
