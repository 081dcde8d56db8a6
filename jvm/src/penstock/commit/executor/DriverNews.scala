// Scala because: threads of tasks wait on executors for what the driver decides, batch by batch.
package penstock.commit.executor

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicBoolean

import scala.concurrent.ExecutionContext.parasitic
import scala.concurrent.Future
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.commit.Changes
import penstock.commit.channel.{Answer, Message, NotReleasing, WayToDriver}

/**
 * What this JVM last heard of the driver, for those that wait for an answer to change. Whoever
 * waits for the same thing shares one question, which the driver leaves open until its answer is
 * another one: there are as many messages as there are changes, however many wait and however long.
 */
final class DriverNews(toDriver: WayToDriver, changes: Changes) extends Logging {
  private val byQuestion = new ConcurrentHashMap[Message, Asked]()

  /**
   * The last answer that is known here. A later one is on its way once this has returned, and counts
   * as a change: look at the count of changes, then at this, then wait for another count.
   */
  def latest(question: Message): Answer =
    if (toDriver.isDriver) toDriver.ask(question)
    else {
      val asked = byQuestion.computeIfAbsent(question, q => new Asked(q, toDriver.ask(q)))
      // A run that releases nothing never will.
      if (asked.answer != NotReleasing) asked.keepOpen()
      asked.answer
    }

  /** Nobody waits with this question any more, or who does asks anew. */
  def forget(question: Message): Unit = { byQuestion.remove(question); () }

  private[commit] def forgetRun(run: String): Unit = { byQuestion.keySet.removeIf(_.run == run); () }

  /** The runs that something is known of. */
  def runs: Set[String] = byQuestion.keySet.asScala.map(_.run).toSet

  private final class Asked(question: Message, first: Answer) {
    @volatile var answer: Answer = first
    private val isOpen = new AtomicBoolean(false)

    def keepOpen(): Unit = if (isOpen.compareAndSet(false, true)) {
      val heard =
        try toDriver.askWhenOther(question, answer)
        catch { case NonFatal(e) => Future.failed(e) }
      heard.onComplete {
        case Success(other) =>
          answer = other
          isOpen.set(false)
          changes.happened()
        case Failure(e) =>
          // Who waits asks anew after a while, and is told what is wrong if that fails too.
          logWarning(s"the driver did not answer $question: ${e.getMessage}")
          byQuestion.remove(question, this)
      }(parasitic)
    }
  }
}
