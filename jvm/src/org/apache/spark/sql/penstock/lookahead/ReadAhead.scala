// Scala because: it reads pages of the log beside the tasks of a JVM and hints the keys in them.
package org.apache.spark.sql.penstock.lookahead

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.Clock
import penstock.commit.Workers
import penstock.commit.jvm.{JvmPart, JvmResources}
import penstock.prefetch.{AheadOf, AheadPages}
import penstock.settings.Connection
import penstock.source.ReadRange

/**
 * What comes behind a batch in one stream of the log.
 *
 * @param range of the batch; what is read ahead begins where it ends
 * @param hints keys are computed from the stream's columns
 */
private[lookahead] final case class AheadSource(connection: Connection, range: ReadRange, hints: HintSource) {
  def of(substream: Int): AheadOf =
    AheadOf(range.reader.getOrElse(""), range.stream, substream, range.columns)

  /** Who is hinted: an operator, for one of its inputs. */
  def hinted: (Long, Int) = (hints.location.operator, hints.input)
}

/**
 * Reads substreams ahead of admission, on the executor whose tasks read them: from when a batch is
 * planned, every row behind it is of a later one. Pages are kept for the task that will read them,
 * and the keys of their rows are hinted, to each operator and input that reads the substream. It
 * reads as far as the next batches come, by the size of the last one, and as there is room for
 * pages, a few times a batch ([[AheadPace]]). One thread for all; it ends when nothing is left to
 * follow, and what fails is left to the tasks.
 */
private[lookahead] final class ReadAhead(pages: AheadPages, log: AheadLog, clock: Clock)
    extends JvmPart
    with Logging {

  private val followed = mutable.HashMap.empty[AheadOf, FollowedSubstream]
  private var reader = Option.empty[Thread]
  private var isClosed = false

  /** Batches that have begun; the reading thread looks again at when to read. */
  private var begun = 0L

  /** From a task of the batch; returns at once. */
  def follow(source: AheadSource, substream: Int): Unit = synchronized {
    if (!isClosed) {
      val of = source.of(substream)
      followed.getOrElseUpdate(of, new FollowedSubstream(of, pages, clock)).follow(source)
      begun += 1
      notifyAll()
      if (reader.isEmpty) {
        val started = Workers.daemons("penstock-read-ahead").newThread(() => run())
        reader = Some(started)
        started.start()
      }
    }
  }

  override def forgetRun(run: String): Unit = leaveIf(_.run == run)

  override def close(): Unit = {
    synchronized { isClosed = true }
    leaveIf(_ => true)
  }

  private def run(): Unit =
    try while (goesOn()) {
      waitDue().foreach(readOn)
      leaveIf(_.isIdle)
    } finally synchronized(if (reader.contains(Thread.currentThread)) reader = None)

  private def goesOn(): Boolean = synchronized {
    if (followed.isEmpty) reader = None
    followed.nonEmpty
  }

  /** Those whose moment has come, after a wait for the first of them; none if a batch came before. */
  private def waitDue(): Seq[FollowedSubstream] = synchronized {
    val seen = begun
    val firstNs = math.max(0, followed.values.map(_.waitNs).minOption.getOrElse(0L))
    // Rounded up, lest the last part of a millisecond is waited for in a busy loop.
    val firstMs = (firstNs + Clock.NsInMs - 1) / Clock.NsInMs
    clock.await(this, firstMs)(begun != seen || followed.isEmpty)
    followed.values.filter(_.waitNs <= 0).toSeq
  }

  private def leaveIf(isMeant: FollowedSubstream => Boolean): Unit = synchronized {
    followed.values.toSeq.filter(isMeant).foreach { each =>
      followed -= each.of
      each.leave()
    }
    notifyAll()
  }

  private def readOn(substream: FollowedSubstream): Unit = {
    val isKept =
      try substream.turn(log)
      catch {
        case NonFatal(e) =>
          logDebug("rows that wait in the log were not read ahead", e)
          false
      }
    if (!isKept) leaveIf(_ eq substream)
  }
}

private[lookahead] object ReadAhead {

  /** That of this JVM. */
  def here: ReadAhead = {
    val resources = JvmResources.here
    resources.parts.of(classOf[ReadAhead])(
      new ReadAhead(resources.aheadPages, new ServedLog(resources.gateways), resources.clock))
  }
}
