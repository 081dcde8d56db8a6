// Scala because: a rule of Spark's planner, applied to every batch.
package org.apache.spark.sql.penstock.lookahead

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{CodegenSupport, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{StateStoreSaveExec, SessionWindowStateStoreSaveExec, StatefulOperator, StatefulOperatorStateInfo}
import org.apache.spark.sql.execution.streaming.state.StateKeeper
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.{PlanAttempt, RunningQuery}

import penstock.PartFailure
import penstock.commit.jvm.JvmResources
import penstock.prefetch.{Candidate, OperatorLookahead}
import penstock.settings.Keys
import penstock.source.{LogMicroBatchStream, Position, SubstreamPartition}

/**
 * Puts lookahead nodes into the plan of a stateful micro-batch: for each operator whose state is
 * read key by key, at the places that are active. An operator or a shape of the plan that it does
 * not know stays as it is, and the reason is kept.
 */
object LookaheadRule extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (setting == "off") plan
    else
      RunningQuery.streamThread match {
        case Some((_, run)) if !plan.exists(_.isInstanceOf[LookaheadExec]) => tried(plan, run)
        case _ => plan
      }

  /** A batch without hints is slower, and right. */
  private def tried(plan: SparkPlan, run: String): SparkPlan =
    try new BatchLookahead(plan, run).apply()
    catch {
      case PartFailure(e) =>
        PlanAttempt.note("a batch is planned without lookahead", e)
        plan
    }

  private def setting: String = Keys.Prefetch.value(key => Option(SQLConf.get.getConfString(key, null)))
}

/** The lookahead of one batch. */
private final class BatchLookahead(plan: SparkPlan, run: String) {
  import BatchLookahead._

  private val nodes = new IdentityHashMap[SparkPlan, Vector[Planned]]
  private val slack = new SlackOfBatch(JvmResources.here.clock.wallMs)

  /** A sink may plan queries of its own on the stream thread: they have no stateful operators. */
  def apply(): SparkPlan = {
    val stateful = plan.collect { case operator: StatefulOperator => operator }
      .filterNot(operator => isSecond(operator))
    if (stateful.nonEmpty) {
      HintChannel.open(plan.session.sparkContext)
      BatchSlacks.here.reported(run, slack)
      val operators = stateful.flatMap(planned).distinctBy(_.operator)
      JvmResources.here.lookaheads.planned(run, operators)
      for (batch <- RunningQuery.batchOfThisThread; operator <- operators)
        JvmResources.here.planNotes.say(run, batch, RuleName, operator.operator, operator.note)
    }
    if (nodes.isEmpty) plan else placed(plan, None)
  }

  private def planned(operator: StatefulOperator): Option[OperatorLookahead] =
    operator.stateInfo.filter(_.queryRunId.toString == run).map { info =>
      val reads = StateKeeper.reasonAgainstOurs.toLeft(()).flatMap(_ => StateRead.of(operator))
      reads.fold(
        reason => OperatorLookahead(info.operatorId, operator.nodeName, Nil, Set.empty, Seq(reason)),
        inputs => withPlaces(operator, info, inputs.map(read => (read, Places.of(read)))))
    }

  private def withPlaces(
      operator: StatefulOperator,
      info: StatefulOperatorStateInfo,
      inputs: Seq[(StateRead, Places)]): OperatorLookahead = {
    val asked = JvmResources.here.activeCandidates.of(run, info.operatorId)
    val active = inputs.zipWithIndex.flatMap { case ((read, places), input) =>
      val hinting = asked.flatMap(places.nearest)
      places.byCandidate.foreach { case (candidate, place) =>
        if (hinting(candidate) || places.isTimed(candidate)) {
          note(read, places, candidate, place, info, input, hinting(candidate))
        }
      }
      hinting
    }.toSet
    OperatorLookahead(
      info.operatorId,
      operator.nodeName,
      Candidate.all.filter(candidate => inputs.exists(_._2.byCandidate.contains(candidate))),
      active,
      inputs.flatMap(_._2.reasons).distinct)
  }

  private def note(
      read: StateRead,
      places: Places,
      candidate: Candidate,
      place: Place,
      info: StatefulOperatorStateInfo,
      input: Int,
      isHinting: Boolean): Unit = {
    val times = new PassTimes
    plan.session.sparkContext.register(times)
    slack.taken(info.operatorId, candidate, places, times)
    val keys = if (isHinting) place.keys else Nil
    val hinted = HintSource(
      candidate, StateLocation.of(info), info.storeVersion, input,
      keys.map(BoundKey.of(_, place.node.output)), read.keyTypes, read.stores, hintsHere = candidate == Candidate.D, times, hotThreshold, reads)
    val isWindow = isHinting && candidate == Candidate.D && !places.isBarrier
    val source = if (candidate == Candidate.A) inLog(place.node, hinted) else hinted
    nodes.merge(
      place.node,
      Vector(Planned(
        source, keys.flatMap(_.all).flatMap(_.references).distinct, if (isWindow) WindowRows else 0)),
      (before, more) => before ++ more)
    ()
  }

  /** A node that hints nothing of the rows that pass: they begin the reading ahead behind them. */
  private def inLog(node: SparkPlan, hinted: HintSource): HintSource = {
    val ahead = node match {
      case scan: MicroBatchScanExec =>
        (scan.stream, scan.inputPartitions.headOption) match {
          case (log: LogMicroBatchStream, Some(partition: SubstreamPartition)) =>
            Some(AheadSource(log.connection, partition.range, hinted))
          case _ => None
        }
      case _ => None
    }
    hinted.copy(keys = Nil, ahead = ahead)
  }

  private def placed(node: SparkPlan, parent: Option[SparkPlan]): SparkPlan = {
    val rebuilt = node.mapChildren(placed(_, Some(node)))
    Option(nodes.get(node)).toSeq.flatten.foldLeft(rebuilt) { (below, planned) =>
      LookaheadExec(
        below, planned.source, planned.used, isFused(planned, node, parent), planned.windowRows)
    }
  }

  /**
   * Whether a node takes part in the code that Spark generates for those around it. Next to a
   * shuffle, at C and D, it does not: rows are in memory there as rows, and it hands them on. Nor
   * does a long key, which would make the loop over all rows too large to be compiled well.
   */
  private def isFused(planned: Planned, node: SparkPlan, parent: Option[SparkPlan]): Boolean = {
    val expressions = planned.source.keys.flatMap(_.all)
    val isShort = CarriedKey.sizeOf(expressions) <= FusedMax &&
      !expressions.exists(_.exists(_.isInstanceOf[CodegenFallback]))
    planned.source.candidate.rank <= Candidate.B.rank && isShort &&
    planned.source.keys.forall(_.partition.nonEmpty) &&
    (node.supportsColumnar || isGeneratedNode(node)) && !defersColumns(node) &&
    parent.exists(isGeneratedNode)
  }

  /**
   * Whether columns of the node are expressions that Spark computes where they are first needed: to
   * compute them before may fail on a row that would have been dropped by then.
   */
  private def defersColumns(node: SparkPlan): Boolean = node match {
    case _: ProjectExec => true
    case _: BaseAggregateExec => false
    case _ if node.supportsColumnar || !isGeneratedNode(node) => false
    case other => other.children.exists(defersColumns)
  }

  private def isGeneratedNode(node: SparkPlan): Boolean = node match {
    case generated: CodegenSupport => generated.supportCodegen
    case _ => false
  }

  /** How far the batch reads each stream of the log; of two readers of one, as far as both do. */
  private lazy val reads: Map[String, Long] = plan.collect { case scan: MicroBatchScanExec => scan.end }
    .collect { case end: Position => end.stream -> end.lsn }
    .groupMapReduce(_._1)(_._2)(math.min(_, _))

  private lazy val hotThreshold: Int =
    Keys.PrefetchHotThreshold.value(key => Option(SQLConf.get.getConfString(key, null))).toInt
}

private object BatchLookahead {

  /** By which `penstock.plan_notes` names the rule. */
  val RuleName = "prefetch"

  /** A node to be put over another one. */
  final case class Planned(source: HintSource, used: Seq[Attribute], windowRows: Int)

  /** Expressions that a key may have in generated code. */
  val FusedMax = 60

  /** Rows that joins and deduplication read ahead: some blocks of hints for each fetching thread. */
  val WindowRows = 1024

  /** The half of an operator that writes what another node has read. */
  def isSecond(operator: StatefulOperator): Boolean =
    operator.isInstanceOf[StateStoreSaveExec] || operator.isInstanceOf[SessionWindowStateStoreSaveExec]
}
