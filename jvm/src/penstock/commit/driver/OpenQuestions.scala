// Scala because: the driver answers executors from here, whenever a release queue has changed.
package penstock.commit.driver

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicBoolean

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.Deadline
import penstock.commit.{Changes, Workers}
import penstock.commit.channel.{Answer, Message, WhenOther}

/**
 * Questions of executors that are open until their answer is another than the one they know, so
 * that nobody asks again and again. One that has been open for long is answered all the same: who
 * asked may be gone.
 */
final class OpenQuestions(changes: Changes, answerNow: Message => Answer) extends Logging {
  import OpenQuestions._

  private final class Open(val asked: WhenOther, val reply: Answer => Unit, val end: Deadline)

  private val open = new ConcurrentLinkedQueue[Open]()
  private val isWatched = new AtomicBoolean(false)

  /** How many are open. */
  def size: Int = open.size

  def add(asked: WhenOther)(reply: Answer => Unit): Unit = {
    val question = new Open(asked, reply, changes.clock.deadline(HoldMs))
    open.add(question)
    answer(question)
    watch()
  }

  private[commit] def close(): Unit = open.clear()

  /** One thread looks at all of them after every change, and ends when none is open. */
  private def watch(): Unit = if (!open.isEmpty && isWatched.compareAndSet(false, true)) {
    val thread = Workers.daemons("penstock-news").newThread { () =>
      try
        while (!open.isEmpty) {
          val seen = changes.count
          open.asScala.foreach(answer)
          if (!open.isEmpty) changes.await(seen, LookMs)
        }
      finally {
        isWatched.set(false)
        // However this thread ends, what is open is looked at by another.
        watch()
      }
    }
    thread.start()
  }

  private def answer(question: Open): Unit =
    try {
      val now = answerNow(question.asked.question)
      if ((now != question.asked.known || question.end.isOver) && open.remove(question)) {
        question.reply(now)
      }
    } catch {
      case NonFatal(e) => logWarning(s"answering ${question.asked.question} failed", e)
    }
}

object OpenQuestions {

  /** How long a question is open at most. */
  val HoldMs = 10000L

  /** How long after its time one may still be open. */
  private val LookMs = 1000L
}
