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
import org.apache.spark.sql.penstock.{PlanAttempt, RunningQuery}

import penstock.commit.jvm.JvmResources
import penstock.devices.PathChoice
import penstock.settings.{ChoiceKey, Keys}
import penstock.wire.BatchPlan

/**
 * Plans streaming aggregates over sliding windows by panes, below their shuffle, and makes those over
 * windows that do not overlap known to the rule after it. Decides nothing itself: PaneDecision says
 * which plans qualify, PanePlan how they are made.
 */
object PaneRule extends Rule[SparkPlan] {
  import PaneDecision._

  private val RuleName = "panes"

  /** Of a note that is about no operator in particular. */
  private val NoOperator = 0L

  /** What cannot be planned because something fails is Spark's, as it is without this rule. */
  override def apply(plan: SparkPlan): SparkPlan = PlanAttempt.of(planned(plan)) { reason =>
    say(Seq(leftToSpark(NoOperator, reason)))
    plan
  }

  private def planned(plan: SparkPlan): SparkPlan = {
    val outcomes = plan.collect {
      case restore: StateStoreRestoreExec =>
        partialBelow(restore.child).map(tried(_, operatorOf(restore.stateInfo)))
      case session: SessionWindowStateStoreRestoreExec =>
        Some(leftToSpark(operatorOf(session.stateInfo), "sessions have no panes"))
      case realTime: StatefulStreamlineAggregateExec =>
        Option.when(realTime.groupingExpressions.exists(isWindow))(
          leftToSpark(
            operatorOf(realTime.stateInfo),
            "in Real-Time Mode every row is merged into state by itself"))
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

  private def leftToSpark(operator: Long, reason: String): Outcome =
    Outcome(operator, Some(s"left to Spark: $reason"))

  private def tried(partial: BaseAggregateExec, operator: Long): Outcome =
    PlanAttempt.of(outcome(partial, operator))(leftToSpark(operator, _))

  private def outcome(partial: BaseAggregateExec, operator: Long): Outcome =
    PaneDecision.on(partial) match {
      case NoWindows => Outcome(operator, None)
      case LeftToSpark(reason) => leftToSpark(operator, reason)
      case Panes(_) if setting(Keys.Windows) == Keys.SparkWindows =>
        leftToSpark(operator, s"${Keys.Windows} is ${Keys.SparkWindows}")
      case Panes(windowed) =>
        PathChoice.of(setting(Keys.Devices), planFor(operator)) match {
          case PathChoice.BySpark(reason) => leftToSpark(operator, reason)
          case _ => byPanes(partial, windowed, operator)
        }
      case OneWindow(windowed) => asOneWindow(partial, windowed, operator)
    }

  /** Left as Spark plans it, and made known to the rule that may have workers do it. */
  private def asOneWindow(
      partial: BaseAggregateExec,
      windowed: WindowedAggregate,
      operator: Long): Outcome = {
    val isForSparkAlone = setting(Keys.Windows) == Keys.SparkWindows ||
      setting(Keys.Devices) == Keys.SparkDevices
    if (!isForSparkAlone)
      PanePlan.ofOneWindow(windowed, operator).foreach(partial.setTagValue(TumblingAggregate.Tag, _))
    leftToSpark(operator, "windows do not overlap")
  }

  private def byPanes(
      partial: BaseAggregateExec,
      windowed: WindowedAggregate,
      operator: Long): Outcome =
    PanePlan.of(windowed, operator) match {
      case Left(reason) => leftToSpark(operator, reason)
      case Right(plan) =>
        Outcome(operator, Some(s"panes: ${windowed.windows}"), Some(partial -> plan))
    }

  /** The plan that came with the batch, if this operator is planned. */
  private def planFor(operator: Long): Option[BatchPlan] = for {
    (_, run) <- RunningQuery.streamThread
    plans <- JvmResources.here.devicePlans.ofRun(run)
    plan <- plans.planFor(operator)
  } yield plan

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

  private def setting(key: ChoiceKey): String =
    key.value(name => Option(SQLConf.get.getConfString(name, null)))

  /** A plan that is made for its explanation only belongs to no run, and nothing is kept of it. */
  private def say(outcomes: Seq[Outcome]): Unit = for {
    (_, run) <- RunningQuery.streamThread
    batch <- RunningQuery.batchOfThisThread
    outcome <- outcomes
    text <- outcome.note
  } JvmResources.here.planNotes.say(run, batch, RuleName, outcome.operator, text)
}
