// Scala because: state stores ask the driver from the threads of tasks, while these load and
// commit.
package penstock.commit.executor

import scala.collection.mutable
import scala.util.control.NonFatal

import penstock.{Backoff, Failpoint, TryAgain}
import penstock.checkpoint.location.StateFile
import penstock.commit.channel.{Answer, GaveUp, HowFar, NotReleasing, Standing, Whereabouts, WhereIs}
import penstock.settings.CommitSettings
import penstock.wire.FileEntry

/** What a writer or reader of state on this JVM asks the driver. */
final class DriverQuestions(resources: ExecutorParts) {
  import DriverQuestions._

  private val toDriver = resources.toDriver

  /**
   * What `isReleasing` was answered, of the last runs. Kept beyond their ends: a task that outlives
   * its run must not take it for one that writes to the location itself.
   */
  private val answers = mutable.LinkedHashMap.empty[String, Boolean]

  /** Whether the run holds its state back; settled before its first task runs. */
  def isReleasing(run: String): Boolean =
    answers.synchronized(answers.get(run)).getOrElse {
      val answer = toDriver.ask(HowFar(run)) != NotReleasing
      answers.synchronized {
        answers(run) = answer
        if (answers.size > AnswersMax) answers -= answers.head._1
      }
      answer
    }

  /** Whether what is written for the run can still become durable; yes if the driver is not heard. */
  def goesOn(run: String): Boolean =
    try
      toDriver.ask(HowFar(run)) match {
        case standing: Standing => standing.stopped.isEmpty
        case NotReleasing => false
      }
    catch { case NonFatal(_) => true }

  /** What the run wrote here cannot be made durable: it stops, and leaves nothing here. */
  def giveUp(run: String, reason: String, isFenced: Boolean = false): Unit = {
    toDriver.ask(GaveUp(run, reason, isFenced))
    resources.forgetRun(run)
  }

  /**
   * Waits for a file that another JVM has written: says where it is when it has arrived, None if the
   * driver knows nothing of it. Throws if it is lost, or does not come.
   */
  def awaitArrival(run: String, stateFile: StateFile, settings: CommitSettings)(
      hasArrived: => Boolean): Option[Arrival] = resources.steps.timed(run, "wait for arrival") {
    val question = WhereIs(run, stateFile.batch, stateFile.piece)
    var arrived = hasArrived
    var at = whereIn(toDriver.ask(question), stateFile)
    if (!arrived && at.isOnItsWay) {
      Failpoint.reach("before_arrival", run, stateFile.batch)
      val end = resources.clock.deadline(settings.retryMs)
      // A file that comes without a word of the driver is seen after a while.
      val look = new Backoff(resources.clock, LookMsFirst, LookMsMax)
      try
        while (!arrived && at.isOnItsWay && !end.isOver) {
          val seen = resources.changes.count
          at = whereIn(resources.news.latest(question), stateFile)
          arrived = hasArrived
          if (!arrived && at.isOnItsWay) resources.changes.await(seen, look.nextMs())
        }
      finally resources.news.forget(question)
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

  private def whereIn(answer: Answer, stateFile: StateFile): Where = answer match {
    case standing: Standing => Where(standing.asked, inLog(standing, stateFile))
    case NotReleasing => Where(Whereabouts.Unknown, None)
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
      case Whereabouts.OnItsWay | Whereabouts.InLocation | Whereabouts.InLog(_) => true
      case Whereabouts.Unknown | Whereabouts.Lost => false
    })
  }

  /** How soon, and how late at most, the location is looked at that nobody tells of. */
  val LookMsFirst = 10L
  val LookMsMax = 500L

  /** More runs than tasks of which can be left on a JVM. */
  val AnswersMax = 1000
}
