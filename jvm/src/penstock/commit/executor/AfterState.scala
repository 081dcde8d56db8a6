// Scala because: commits of state stores of one JVM wait here for what their stores wrote before.
package penstock.commit.executor

import scala.collection.mutable

import penstock.{Clock, Deadline}

/**
 * Work that begins once the state that its store wrote before is durable. It has no thread until
 * then: a slow store must not take those that others need. Not safe for threads: HeldState has the
 * lock.
 */
private[commit] final class AfterState(clock: Clock) {
  private final class Waiting(val isReady: () => Boolean, val end: Deadline, val start: () => Unit)

  /** By run and folder. */
  private val byStore = mutable.LinkedHashMap.empty[(String, String), Seq[Waiting]]

  /** After `limitMs` it begins in any case, and finds out for itself. */
  def add(run: String, folder: String, limitMs: Long)(isReady: => Boolean)(start: => Unit): Unit = {
    val work = new Waiting(() => isReady, clock.deadline(limitMs), () => start)
    byStore((run, folder)) = byStore.getOrElse((run, folder), Nil) :+ work
    startReady(run, folder)
  }

  def startReady(run: String, folder: String): Unit = startIf((run, folder))(_.isReady())

  /** A run has ended: nothing of it is on its way. */
  def startAll(run: String): Unit =
    byStore.keys.filter(_._1 == run).toSeq.foreach(startIf(_)(_ => true))

  def startLate(): Unit = byStore.keys.toSeq.foreach(startIf(_)(_.end.isOver))

  private def startIf(store: (String, String))(isDue: Waiting => Boolean): Unit =
    byStore.get(store).foreach { all =>
      val (due, others) = all.partition(isDue)
      if (others.isEmpty) byStore -= store else byStore(store) = others
      due.foreach(_.start())
    }
}
