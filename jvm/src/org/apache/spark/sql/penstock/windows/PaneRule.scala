// Scala because: it is a rule of Spark's planner, which applies it to every micro-batch.
package org.apache.spark.sql.penstock.windows

import org.apache.spark.sql.catalyst.expressions.{NamedExpression, TimeWindow}
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.streaming.StatefulStreamlineAggregateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  SessionWindowStateStoreRestoreExec,
  StatefulOperatorStateInfo,
  StateStoreRestoreExec
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.RunningQuery

import penstock.commit.jvm.JvmResources
import penstock.settings.Keys

/**
 * Plans streaming aggregates over sliding windows by panes, below their shuffle. Decides nothing
 * itself: PaneDecision says which plans qualify, PanePlan how they are made.
 */
object PaneRule extends Rule[SparkPlan] {
  import PaneDecision._

  private val RuleName = "panes"

  override def apply(plan: SparkPlan): SparkPlan = {
    val outcomes = plan.collect {
      case restore: StateStoreRestoreExec =>
        partialBelow(restore.child).map(outcome(_, operatorOf(restore.stateInfo)))
      case session: SessionWindowStateStoreRestoreExec =>
        Some(Outcome(operatorOf(session.stateInfo), Some("left to Spark: sessions have no panes")))
      case realTime: StatefulStreamlineAggregateExec =>
        Option.when(realTime.groupingExpressions.exists(isWindow))(
          Outcome(
            operatorOf(realTime.stateInfo),
            Some("left to Spark: in Real-Time Mode every row is merged into state by itself")))
    }.flatten
    say(outcomes)
    val changes = outcomes.flatMap(_.change)
    if (changes.isEmpty) plan
    else
      plan.transformDown { case partial: BaseAggregateExec =>
        changes.collectFirst { case (replaced, by) if replaced eq partial => by }.getOrElse(partial)
      }
  }

  /** What becomes of one operator, and what is said about it. */
  private final case class Outcome(
      operator: Long,
      note: Option[String],
      change: Option[(BaseAggregateExec, SparkPlan)] = None)

  private def outcome(partial: BaseAggregateExec, operator: Long): Outcome =
    PaneDecision.on(partial) match {
      case NoWindows => Outcome(operator, None)
      case LeftToSpark(reason) => Outcome(operator, Some(s"left to Spark: $reason"))
      case Panes(_) if setting == Keys.SparkWindows =>
        Outcome(operator, Some(s"left to Spark: ${Keys.Windows} is ${Keys.SparkWindows}"))
      case Panes(windowed) =>
        PanePlan.of(windowed) match {
          case Left(reason) => Outcome(operator, Some(s"left to Spark: $reason"))
          case Right(plan) =>
            Outcome(operator, Some(s"panes: ${windowed.windows}"), Some(partial -> plan))
        }
    }

  /** The aggregate below the shuffle of a stateful aggregate: the first that merges nothing. */
  private def partialBelow(plan: SparkPlan): Option[BaseAggregateExec] = plan match {
    case aggregate: BaseAggregateExec if isPartial(aggregate) => Some(aggregate)
    case unary: UnaryExecNode => partialBelow(unary.child)
    case _ => None
  }

  private def isPartial(aggregate: BaseAggregateExec): Boolean =
    aggregate.requiredChildDistributionExpressions.isEmpty &&
      aggregate.aggregateExpressions.forall(_.mode == Partial)

  private def isWindow(key: NamedExpression): Boolean = key.metadata.contains(TimeWindow.marker)

  private def operatorOf(state: Option[StatefulOperatorStateInfo]): Long =
    state.fold(0L)(_.operatorId)

  private def setting: String =
    Keys.Windows.value(key => Option(SQLConf.get.getConfString(key, null)))

  /** A plan that is made for its explanation only belongs to no run, and nothing is kept of it. */
  private def say(outcomes: Seq[Outcome]): Unit = for {
    (_, run) <- RunningQuery.streamThread
    batch <- RunningQuery.batchOfThisThread
    outcome <- outcomes
    text <- outcome.note
  } JvmResources.here.planNotes.say(run, batch, RuleName, outcome.operator, text)
}
