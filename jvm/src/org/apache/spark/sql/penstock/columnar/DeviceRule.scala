// Scala because: it changes the physical plan of every micro-batch, on the thread that plans it.
package org.apache.spark.sql.penstock.columnar

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.python.MapInArrowExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.{PlanAttempt, RunningQuery, StreamThread}
import org.apache.spark.sql.penstock.windows.{PaneAggregate, TumblingAggregate}

import penstock.Clock
import penstock.commit.jvm.JvmResources
import penstock.devices.{GpuWorkers, PathChoice, RunPlans}
import penstock.settings.{Key, Keys}

/**
 * Has aggregates per pane made by Python workers, where a setting or the plan of the batch says so and
 * all that is below them translates. What does not stays with Spark, by panes or, where windows do not
 * overlap, as Spark has planned it, and is named; so does what cannot be planned because something
 * fails. A query that insists on the GPU fails instead (`InsistedGpu`). A `mapInArrow` directly over the
 * log gets its columns, unless the setting is for Spark or panes.
 *
 * Of a query that asks admission it also notes what the next question is to offer, and the path that
 * this batch takes.
 */
object DeviceRule extends Rule[SparkPlan] {
  private val RuleName = "devices"

  /** Of notes that are about no operator in particular. */
  private val NoOperator = 0L

  override def apply(plan: SparkPlan): SparkPlan = {
    val setting = settingOf(Keys.Devices)
    val plans = for {
      (_, run) <- RunningQuery.streamThread
      known <- JvmResources.here.devicePlans.ofRun(run)
    } yield known
    plans match {
      case Some(known) => timed(known)(changedBy(plan, setting, plans))
      case None => changedBy(plan, setting, None)
    }
  }

  private def timed(plans: RunPlans)(change: => SparkPlan): SparkPlan = {
    val clock = JvmResources.here.clock
    val beganNs = clock.nanos
    val changed = change
    val ms = (clock.nanos - beganNs).toDouble / Clock.NsInMs
    RunningQuery.batchOfThisThread.foreach(plans.ruleTook(_, ms))
    changed
  }

  private def changedBy(plan: SparkPlan, setting: String, plans: Option[RunPlans]): SparkPlan =
    if (isThroughSpark(setting) && plans.isEmpty) plan
    else
      PlanAttempt.of {
        val changed = withDevices(plan, setting, plans)
        InsistedGpu.check(changed, setting)
        plans.foreach(TakenPaths.note(changed, _, setting))
        changed
      } { reason =>
        leave(NoOperator, plan, reason, setting == Keys.GpuDevices)(s"not in workers: $reason")
        plan
      }

  private def withDevices(plan: SparkPlan, setting: String, plans: Option[RunPlans]): SparkPlan =
    plan.transformUp {
      case hash: HashAggregateExec =>
        val inWorkers = hash.getTagValue(TumblingAggregate.Tag) match {
          case Some(tumbling) => inWorkersOf(tumbling.perPane, setting, plans).map(tumbling.by)
          case None => inWorkersOf(hash, setting, plans)
        }
        inWorkers.getOrElse(hash)
      case expand: ExpandExec if isOfWindows(expand.child) =>
        // The first copy of a partial result is for the window that starts with its pane.
        expand.copy(projections = expand.projections.take(1))
      case map: MapInArrowExec if !isThroughSpark(setting) => ColumnarMapExec.of(map).getOrElse(map)
    }

  private def isThroughSpark(setting: String): Boolean =
    setting == Keys.SparkDevices || setting == Keys.PanesDevices

  /** The node that has an aggregate per pane made by workers; None where they are not to make it. */
  private def inWorkersOf(
      hash: HashAggregateExec,
      setting: String,
      plans: Option[RunPlans]): Option[SparkPlan] =
    hash.getTagValue(PaneAggregate.Tag).flatMap { known =>
      PlanAttempt.of[Option[SparkPlan]] {
        if (PipelineTranslation.isWithoutRows(hash)) None
        else new AggregateDevices(hash, known, setting, plans).planned
      } { reason =>
        leave(known.operator, hash, reason, setting == Keys.GpuDevices)(known.left(reason))
        None
      }
    }

  /** Whether partial results are of windows already, and have not to be copied to them. */
  private def isOfWindows(plan: SparkPlan): Boolean = plan match {
    case columnar: ColumnarPanesExec => columnar.placed.pipeline.isExpanded
    case _ => false
  }

  private[columnar] def settingOf[A](key: Key[A]): A =
    key.value(name => Option(SQLConf.get.getConfString(name, null)))

  /** Notes what workers do not make, and why; refuses it where the query must not fall back. */
  private[columnar] def leave(
      operator: Long,
      part: SparkPlan,
      reason: String,
      mustNotFallBack: Boolean)(note: String): Unit =
    if (mustNotFallBack && InsistedGpu.isOfBatch(part)) throw InsistedGpu.refusal(reason)
    else say(operator, note)

  /** A plan that is made for its explanation only belongs to no run, and nothing is kept of it. */
  private[columnar] def say(operator: Long, text: String): Unit = for {
    (_, run) <- RunningQuery.streamThread
    batch <- RunningQuery.batchOfThisThread
  } JvmResources.here.planNotes.say(run, batch, RuleName, operator, text)
}

/** Decides what makes one aggregate per pane in the batch that is planned. */
private final class AggregateDevices(
    hash: HashAggregateExec,
    known: PaneAggregate,
    setting: String,
    plans: Option[RunPlans]) {
  import DeviceRule.{leave, say, settingOf}

  private lazy val translated: Either[String, Pipeline] =
    PipelineTranslation.of(hash, known, known.windows.overlap && settingOf(Keys.DevicesExpand))
  private val batch = RunningQuery.batchOfThisThread

  /** The node that has workers make it; None where they do not. */
  def planned: Option[SparkPlan] = {
    val planOfBatch = plans.flatMap(_.planFor(known.operator))
    val refusal = plans.filter(_.offered.isEmpty).flatMap(refusalOfOffer)
    PathChoice.of(setting, planOfBatch) match {
      case workers: PathChoice.InWorkers => inWorkers(workers)
      case _ =>
        if (plans.isDefined && planOfBatch.isEmpty && setting == Keys.AutoDevices) {
          val why = refusal.fold("no plan came with the batch")(reason => s"not planned: $reason")
          say(known.operator, s"${known.pathInSpark}: $why")
        }
        None
    }
  }

  /** Offers the aggregate for the next batches; returns why it cannot be planned, if that is so. */
  private def refusalOfOffer(asking: RunPlans): Option[String] =
    PipelineOffer.of(hash, known, translated, setting) match {
      case Left(reason) => Some(reason)
      case Right(offer) =>
        if (offer.leftToSpark.isEmpty) PythonProgram.beginTrial()
        asking.offers(offer)
        None
    }

  private def inWorkers(choice: PathChoice.InWorkers): Option[SparkPlan] = {
    val made = for {
      _ <- if (choice.isForced) Right(()) else reasonOfOffer.toLeft(())
      pipeline <- translated
      placed <- pipeline.on(choice.devices, choice.mustNotFallBack, gpuWorkers)
      program <- PythonProgram.of(setting)
    } yield ColumnarPanesExec(placed, program, hash)(newTotals(), leftToSpark(choice, _))
    made match {
      case Right(node) =>
        if (choice.isForced) say(known.operator, node.placed.words)
        Some(node)
      case Left(reason) =>
        leave(known.operator, hash, reason, choice.mustNotFallBack)(known.left(reason))
        None
    }
  }

  private def gpuWorkers: Long =
    GpuWorkers.bound(setting, settingOf(Keys.DevicesGpuWorkers), StreamThread.tasksOfMachine)

  /** Why the offer of this aggregate is without workers, as an earlier batch may have found. */
  private def reasonOfOffer: Option[String] =
    plans.flatMap(_.offered).filter(_.operator == known.operator).flatMap(_.leftToSpark)

  /** Workers cannot make it, which was found when it was to run. */
  private def leftToSpark(choice: PathChoice.InWorkers, reason: String): Unit = {
    leave(known.operator, hash, reason, choice.mustNotFallBack)(known.left(reason))
    plans.foreach { asking =>
      batch.foreach(asking.ranInSpark(known.operator, _, known.pathInSpark))
      if (!choice.isForced) asking.leavesWorkers(known.operator, reason)
    }
  }

  private def newTotals(): WorkerTotals = {
    val totals = new WorkerTotals
    hash.session.sparkContext.register(totals)
    totals
  }
}
