// Scala because: the rule that plans a batch leaves here, in the driver's JVM, what it did.
package penstock.prefetch

import scala.collection.mutable

/**
 * What lookahead knows of one stateful operator of a query.
 *
 * @param operator Spark's id of it
 * @param name of its node in the plan
 * @param candidates places of the plan from which its keys can be hinted
 * @param active those that hint in the batch planned last
 * @param reasons why places are missing, or why the operator is left alone
 */
final case class OperatorLookahead(
    operator: Long,
    name: String,
    candidates: Seq[Candidate],
    active: Set[Candidate],
    reasons: Seq[String]) {

  /** A sentence about it for the notes on the plan. */
  def note: String =
    if (candidates.isEmpty) s"left alone: ${reasons.mkString("; ")}"
    else {
      val hinting = candidates.filter(active)
      val now = if (hinting.isEmpty) "none hints now" else s"${hinting.mkString(", ")} now"
      (s"keys can be hinted from ${candidates.mkString(", ")}, $now" +: reasons).mkString("; ")
    }
}

/** Operators of the running queries as lookahead sees them, and their slack; on the driver. */
final class Lookaheads {
  import Lookaheads._

  private val runs = mutable.LinkedHashMap.empty[String, Run]

  /** The operators of the batch that has just been planned. */
  def planned(run: String, operators: Seq[OperatorLookahead]): Unit = synchronized {
    val slack = runs.remove(run).fold(Map.empty[Long, Map[Candidate, Long]])(_.slackMs)
    runs(run) = Run(operators, slack)
    if (runs.size > RunsMax) runs -= runs.head._1
  }

  /**
   * The slack that 99 % of the rows of the last batch had at each place, by milliseconds: the time
   * from the moment they passed it to the first read of their operator's state.
   */
  def observed(run: String, operator: Long, slackMs: Map[Candidate, Long]): Unit = synchronized {
    runs.get(run).foreach { before =>
      runs(run) = before.copy(slackMs = before.slackMs.updated(operator, slackMs))
    }
  }

  def of(run: String): Seq[OperatorLookahead] = synchronized {
    runs.get(run).fold(Seq.empty[OperatorLookahead])(_.operators)
  }

  /** The slack observed last; a place that nothing passed is missing. */
  def slackMs(run: String, operator: Long): Map[Candidate, Long] = synchronized {
    runs.get(run).flatMap(_.slackMs.get(operator)).getOrElse(Map.empty)
  }

  def forgetRun(run: String): Unit = synchronized {
    runs -= run
    ()
  }
}

private object Lookaheads {
  final case class Run(operators: Seq[OperatorLookahead], slackMs: Map[Long, Map[Candidate, Long]])

  /** More than run on one driver; of the rest the oldest is forgotten. */
  val RunsMax = 200
}
