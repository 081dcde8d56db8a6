// Scala because: rules of Spark's planner call it on the thread that plans a batch.
package org.apache.spark.sql.penstock

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.internal.Logging

import penstock.{PartFailure, PenstockException, ShortText}

/**
 * An attempt at a plan other than Spark's own. One that fails in a way that nobody thought of must
 * not end a query that runs without it as well; what is refused in a sentence of ours does.
 *
 * A log has each reason once, as the next batch fails for the same one.
 */
object PlanAttempt extends Logging {
  private val ReasonMax = 200
  private val said = new ReasonSet

  /** What is made; where that fails, what is made `otherwise` of the reason. */
  def of[A](made: => A)(otherwise: String => A): A =
    try made
    catch {
      case refused: PenstockException => throw refused
      case PartFailure(e) =>
        note("a part of a batch is planned in the next safe way", e)
        otherwise(s"planning it failed: ${reasonOf(e)}")
    }

  /** Logs what failed, unless the log has it. */
  private[penstock] def note(consequence: String, failure: Throwable): Unit =
    if (said.isNew(reasonOf(failure))) logWarning(consequence, failure)

  private def reasonOf(failure: Throwable): String = ShortText.of(failure.toString, ReasonMax)
}

/** The reasons that a log has; of many the first ones. */
private[penstock] final class ReasonSet {
  private val said = ConcurrentHashMap.newKeySet[String]()

  def isNew(reason: String): Boolean = said.size < ReasonSet.SizeMax && said.add(reason)
}

private object ReasonSet {
  val SizeMax = 100
}
