// Scala because: state stores ask the driver from the threads of tasks, while these load and
// commit.
package penstock.commit.executor

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import penstock.{Failpoint, TryAgain}
import penstock.checkpoint.location.StateFile
import penstock.commit.channel.{GaveUp, HowFar, NotReleasing, Standing, Whereabouts, WhereIs}
import penstock.commit.driver.ReleaseQueues
import penstock.settings.CommitSettings

/** What a writer or reader of state on this JVM asks the driver. */
object DriverQuestions {
  private val PollMs = 10L
  private val KnownMax = 1000
  private val known = new ConcurrentHashMap[String, java.lang.Boolean]()

  /** Whether the run holds its state back; settled before its first task runs. */
  def isReleasing(run: String): Boolean = {
    if (known.size > KnownMax) known.clear()
    known.computeIfAbsent(run, r => ReleaseQueues.ask(HowFar(r)) != NotReleasing)
  }

  /** Whether what is written for the run can still become durable; yes if the driver is not heard. */
  def goesOn(run: String): Boolean =
    try
      ReleaseQueues.ask(HowFar(run)) match {
        case standing: Standing => standing.stopped.isEmpty
        case NotReleasing => false
      }
    catch { case NonFatal(_) => true }

  /** What the run wrote here cannot be made durable: it stops, and leaves nothing here. */
  def giveUp(run: String, reason: String, isFenced: Boolean = false): Unit = {
    ReleaseQueues.ask(GaveUp(run, reason, isFenced))
    HeldState.forgetRun(run)
  }

  /**
   * Waits for a file that another JVM has written: true when it has arrived, false if the driver
   * knows nothing of it. Throws if it is lost, or does not come.
   */
  def awaitArrival(run: String, what: StateFile, settings: CommitSettings)(
      hasArrived: => Boolean): Boolean = StepTimes.timed(run, "wait for arrival") {
    val end = System.nanoTime() + settings.retryMs * 1000000
    def where: Whereabouts = ReleaseQueues.ask(WhereIs(run, what.batch, what.piece)) match {
      case standing: Standing => standing.asked
      case NotReleasing => Whereabouts.Unknown
    }
    var arrived = hasArrived
    var at = where
    if (!arrived && at == Whereabouts.OnItsWay) Failpoint.reach("before_arrival", run, what.batch)
    while (!arrived && at == Whereabouts.OnItsWay && System.nanoTime() < end) {
      Thread.sleep(PollMs)
      arrived = hasArrived
      at = where
    }
    if (!arrived && at != Whereabouts.Unknown) {
      throw new TryAgain(
        "state_lost",
        s"${what.relative} is ${if (at == Whereabouts.Lost) "lost with its executor" else "late"}; " +
          "the query goes on from the last durable batch when restarted")
    }
    arrived || hasArrived
  }
}
