// Scala because: rules of Spark's planner call it on the thread that plans a batch.
package org.apache.spark.sql.penstock

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.{PenstockException, ShortText}

/**
 * An attempt at a plan other than Spark's own. One that fails in a way that nobody thought of must
 * not end a query that runs without it as well; what is refused in a sentence of ours does.
 */
object PlanAttempt extends Logging {
  private val ReasonMax = 200

  /** What is made; where that fails, what is made `otherwise` of the reason. */
  def of[A](made: => A)(otherwise: String => A): A =
    try made
    catch {
      case refused: PenstockException => throw refused
      case NonFatal(e) =>
        logWarning("a part of a batch is planned in the next safe way", e)
        otherwise(s"planning it failed: ${ShortText.of(e.toString, ReasonMax)}")
    }
}
