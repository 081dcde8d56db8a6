// Scala because: state stores ask the driver from the threads of tasks, while these load and
// commit.
package penstock.commit.executor

import scala.collection.mutable
import scala.util.control.NonFatal

import penstock.{Backoff, Failpoint, TryAgain}
import penstock.checkpoint.location.StateFile
import penstock.commit.channel.{GaveUp, HowFar, NotReleasing, Standing, Whereabouts, WhereIs}
import penstock.settings.CommitSettings
import penstock.wire.FileEntry

/** What a writer or reader of state on this JVM asks the driver. */
final class DriverQuestions(resources: ExecutorParts) {
  import DriverQuestions._

  private val releases = resources.releases

  /**
   * What `isReleasing` was answered, of the last runs. Kept beyond their ends: a task that outlives
   * its run must not take it for one that writes to the location itself.
   */
  private val answers = mutable.LinkedHashMap.empty[String, Boolean]

  /** Whether the run holds its state back; settled before its first task runs. */
  def isReleasing(run: String): Boolean =
    answers.synchronized(answers.get(run)).getOrElse {
      val answer = releases.ask(HowFar(run)) != NotReleasing
      answers.synchronized {
        answers(run) = answer
        if (answers.size > AnswersMax) answers -= answers.head._1
      }
      answer
    }

  /** Whether what is written for the run can still become durable; yes if the driver is not heard. */
  def goesOn(run: String): Boolean =
    try
      releases.ask(HowFar(run)) match {
        case standing: Standing => standing.stopped.isEmpty
        case NotReleasing => false
      }
    catch { case NonFatal(_) => true }

  /** What the run wrote here cannot be made durable: it stops, and leaves nothing here. */
  def giveUp(run: String, reason: String, isFenced: Boolean = false): Unit = {
    releases.ask(GaveUp(run, reason, isFenced))
    resources.forgetRun(run)
  }

  /**
   * Waits for a file that another JVM has written: says where it is when it has arrived, None if the
   * driver knows nothing of it. Throws if it is lost, or does not come.
   */
  def awaitArrival(run: String, stateFile: StateFile, settings: CommitSettings)(
      hasArrived: => Boolean): Option[Arrival] = resources.steps.timed(run, "wait for arrival") {
    val end = resources.clock.deadline(settings.retryMs)
    val backoff = new Backoff(resources.clock, PollMsFirst, PollMsMax)
    val batch = stateFile.batch
    def where: Where = releases.ask(WhereIs(run, batch, stateFile.piece)) match {
      case standing: Standing => Where(standing.asked, inLog(standing, stateFile))
      case NotReleasing => Where(Whereabouts.Unknown, None)
    }
    var seen = resources.changes.count
    var arrived = hasArrived
    var at = where
    if (!arrived && at.isOnItsWay) Failpoint.reach("before_arrival", run, batch)
    while (!arrived && at.isOnItsWay && !end.isOver) {
      releases.awaitNews(seen, backoff)
      seen = resources.changes.count
      arrived = hasArrived
      at = where
    }
    if (arrived) Some(Arrival.InLocation)
    else if (at.inLog.isDefined) at.inLog
    else if (at.answer == Whereabouts.Unknown) Option.when(hasArrived)(Arrival.InLocation)
    else
      throw new TryAgain(
        "state_lost",
        s"${stateFile.relative} is ${if (at.answer == Whereabouts.Lost) "lost with its executor" else "late"}; " +
          "the query goes on from the last durable batch when restarted")
  }

  /** The log may have a piece without all its files: snapshots are in the location. */
  private def inLog(standing: Standing, stateFile: StateFile): Option[Arrival] =
    standing.asked match {
      case Whereabouts.InLog(files) =>
        files.find(_.path == stateFile.relative).map(Arrival.InLog(standing.query, _))
      case _ => None
    }
}

/** Where a file that another JVM has written can be read. */
sealed trait Arrival

object Arrival {
  case object InLocation extends Arrival

  final case class InLog(query: String, file: FileEntry) extends Arrival
}

private object DriverQuestions {

  /** The driver's answer, and what of it is of use to whoever loads one file. */
  final case class Where(answer: Whereabouts, inLog: Option[Arrival]) {
    def isOnItsWay: Boolean = inLog.isEmpty && (answer match {
      case Whereabouts.OnItsWay | Whereabouts.InLog(_) => true
      case Whereabouts.Unknown | Whereabouts.Lost => false
    })
  }

  /** How soon, and how late at most, another JVM is asked again. */
  val PollMsFirst = 10L
  val PollMsMax = 80L

  /** More runs than tasks of which can be left on a JVM. */
  val AnswersMax = 1000
}
