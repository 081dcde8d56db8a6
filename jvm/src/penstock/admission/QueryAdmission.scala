// Scala because: Spark asks the sources of a query in turn, on the stream thread, before a batch.
package penstock.admission

import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.streaming.{SparkDataStream, SupportsTriggerAvailableNow}
import org.apache.spark.sql.penstock.{RunningQuery, SinkKind, StreamThread, TriggerKind}

import penstock.{BadCall, Clock}
import penstock.client.Gateway
import penstock.commit.jvm.JvmResources
import penstock.devices.RunPlans
import penstock.query.{QueryRuns, TaskLog}
import penstock.settings.{Keys, StatedTerms, Terms}
import penstock.wire._

/** What one source may read in a batch; nothing is read, and Spark asks again, unless it is cut. */
final case class Admitted(isCut: Boolean, share: Share)

/**
 * Admission of one run of a query with terms: one question for all of its sources, by whichever of
 * them Spark calls first. The answer is kept for the round, and the others take their part of it.
 *
 * The first question after a batch is answered at once, because Spark may owe a batch without data
 * (a watermark moved). Data are never withheld from a query that reads what is available now, nor
 * while a thread waits for all of it to be processed.
 */
private[admission] final class QueryAdmission(
    query: String,
    plans: RunPlans,
    notes: UntoldNotes,
    sources: Seq[SparkDataStream with AdmittedSource],
    terms: Terms,
    gateway: Gateway,
    isAvailableNow: Boolean,
    clock: Clock) {
  import QueryAdmission._

  private val reports = new BatchReports(
    batch => JvmResources.here.batches.cost(query, batch),
    (batch, cost) => cost.scan.flatMap(plans.report(batch, _)))
  private val outcomes = new Outcomes(clock)
  private var round = Option.empty[Round]
  private var batchBefore = Option.empty[Option[Long]]
  private var backlogs = Map.empty[AdmittedSource, Map[String, String]]

  /** What the batch that was cut last has of each source that counts it. */
  private var reads = Map.empty[AdmittedSource, Amount]

  /** The part of a source in the batch that is being cut; None if Spark is to cut it by itself. */
  def admitted(source: AdmittedSource): Option[Admitted] = {
    val current = round.filter(_.due.contains(source)).getOrElse(ask())
    round = Some(current.copy(due = current.due - source))
    current.answer.map { answer =>
      Admitted(answer.cut.isDefined, answer.shares.getOrElse(sources.indexOf(source), Share.Nothing))
    }
  }

  /** A source outside the log has given the batch that is being cut its part. */
  def tookOf(source: AdmittedSource, read: Amount, left: Amount): Unit = {
    reads += source -> read
    backlogs += source -> Outcomes.backlog(left)
  }

  /** Of the query at its first source, and of every source what it has left over. */
  def metricsOf(source: AdmittedSource): Map[String, String] = {
    val ofQuery = outcomes.metrics
    val shown =
      if (sources.headOption.contains(source)) ofQuery ++ prefetched else Map.empty[String, String]
    val all = shown ++ backlogs.getOrElse(source, Map.empty[String, String])
    all.map { case (name, value) => s"penstock.$name" -> value }
  }

  private def prefetched: Map[String, String] = RunningQuery.streamThread
    .fold(Map.empty[String, String]) { case (_, run) => JvmResources.here.activeCandidates.metrics(run) }

  /**
   * Whoever waits for all data to be processed waits for it to be visible, so that nothing at all is
   * said once all is committed. Data that come before that are cut at once. Withheld data do not end
   * such a wait, so that they need not wait for the commit.
   */
  private def ask(): Round = {
    var asked = askOnce()
    while (asked.lacking.isDefined && QueryRuns.here.isCommitting)
      asked = asked.lacking.filter(mayHaveMore).fold(asked)(_ => askOnce())
    asked
  }

  /**
   * Waits until all is committed, or the inputs may have data; whether they may. The look is none at
   * what a batch could take: it is given up when the commit is first, which a cut must not be.
   */
  private def mayHaveMore(inputs: Seq[BatchInput]): Boolean = inputs match {
    case (first: LogInput) +: others if !isAvailableNow && others.forall(_.isInstanceOf[LogInput]) =>
      val beside = others.collect { case log: LogInput => (log.stream, log.after) }
      val look = AdmissionRequest(
        None, None, first.stream, first.number, first.after, None, None, None, beside, HoldMs,
        InlineRequest(0, 0))
      QueryRuns.here.answerBeforeCommit(gateway.queries.admit(look)).isDefined
    case _ =>
      QueryRuns.here.awaitCommitted()
      false
  }

  private def askOnce(): Round = {
    val isFirst = noteBatchBefore()
    val starts = StreamThread.startsOf(query)
    val inputs = sources.map(source => source.lookFrom(starts.get(source)))
    val log = logHere
    val telling = reports.next()
    val newNotes = notes.next()
    val mustCut = isAwaited
    val question = BatchQuestion(
      query,
      RunningQuery.nameOf(query),
      log.map(_.instance),
      StreamThread.application,
      StreamThread.cores,
      inputs,
      isFirst,
      mustCut,
      telling.values.toSeq,
      schedule,
      if (isFirst || mustCut) 0 else holdMs(inputs),
      PlanningQuestion.of(plans, sources),
      newNotes.map(_._2))
    try {
      val answer = gateway.admission.admitBatch(question, terms)
      log.foreach(_.confirmed())
      reports.delivered(telling, answer.server)
      notes.delivered(newNotes, answer.server)
      val isLacking = took(inputs, answer)
      Round(Some(answer), sources.toSet, Option.when(isLacking)(inputs))
    } catch {
      // What a source does about rows that are gone, it does when it asks by itself.
      case e: BadCall if RowsGone(e.code) =>
        plans.answeredWith(None)
        Round(None, sources.toSet)
    }
  }

  /** Somebody may begin to wait while a question is held: it is asked anew for every answer. */
  private def isAwaited: Boolean = isAvailableNow || StreamThread.isAwaited(query)

  /** The run's task log, if the server that is asked has it. */
  private def logHere: Option[TaskLog] = QueryRuns.here.logOfThisThread.filter(_.isAt(gateway.url))

  /** Whether there is nothing at all, and somebody waits for all to be processed. */
  private def took(inputs: Seq[BatchInput], answer: BatchAdmission): Boolean = {
    QueryRuns.here.check()
    tellJobs(query, answer.deadlineMs, answer.leftMs.filter(_ => answer.cut.isDefined), answer.weight, clock)
    outcomes.answered(answer)
    plans.answeredWith(answer.plan.filter(_ => answer.cut.isDefined))
    val parts = sources.zip(inputs).zipWithIndex.map { case ((source, input), index) =>
      (source, input, answer.shares.getOrElse(index, Share.Nothing))
    }
    if (answer.cut.isDefined) {
      backlogs = parts.map { case (source, input, share) => source -> Outcomes.backlog(input, share) }.toMap
      reads = Map.empty
    }
    answer.cut.isEmpty && isAwaited &&
      parts.forall { case (_, input, share) => isNothing(input, share) }
  }

  /** What the batch that was cut last has of all sources together. */
  private def read: Amount = sources.map(reads.getOrElse(_, Amount.Unknown)).foldLeft(Amount.Nothing)(_ + _)

  /** Remembers the batch that ran since the last question; whether there is one. */
  private def noteBatchBefore(): Boolean = {
    val now = RunningQuery.batchOfThisThread
    val isFirst = !batchBefore.contains(now)
    for (batch <- now; before <- round if isFirst && batchBefore.isDefined; answer <- before.answer) {
      val isMarked = RunningQuery.sinkOf(query) == SinkKind.Log && logHere.isDefined
      reports.ran(batch, answer.cut, isMarked, answer.cut.fold(Amount.Unknown)(_ => read))
    }
    batchBefore = Some(now)
    isFirst
  }
}

object QueryAdmission extends Logging {

  /** How long one question is held at most: Spark's progress lock is held meanwhile. */
  private val HoldMs = 500L

  /** The same where data of a source outside the log are not seen by the server. */
  private val LookMs = 50L

  private val RowsGone = Set("trimmed", "position_past_end", "unknown_stream")

  /**
   * One turn of Spark through the sources: the answer, and who has not had his part of it; `lacking`
   * are the inputs where they have nothing for somebody who waits for all of it.
   */
  private final case class Round(
      answer: Option[BatchAdmission],
      due: Set[AdmittedSource],
      lacking: Option[Seq[BatchInput]] = None)

  /** The admission of the query whose stream thread is calling; None where it has no terms. */
  private[admission] def of(source: SparkDataStream with AdmittedSource): Option[QueryAdmission] =
    source.admission.getOrElse {
      RunningQuery.streamThread.flatMap { case (query, run) => begin(query, run, source) }
    }

  /**
   * Refuses terms that do not go with the trigger of the query whose stream thread is calling, and
   * gives a deadline to a recorded batch, which is run again without a question.
   */
  def starting(stated: StatedTerms): Unit = {
    val session = StatedTerms.read(StreamThread.setting)
    for ((query, _) <- RunningQuery.streamThread if stated.isStated || session.isStated) {
      StreamThread.triggerOf(query) match {
        case TriggerKind.OfItsOwn(words) => throw refusal(words)
        case _ =>
          val deadlineMs = stated.deadlineMs.orElse(session.deadlineMs)
          tellJobs(query, deadlineMs.map(_.toDouble), None, 1.0, JvmResources.here.clock)
      }
    }
  }

  /** Refuses terms of a query in continuous processing, which plans it before it has a thread. */
  def startingContinuous(stated: StatedTerms): Unit =
    if (stated.isStated || StatedTerms.read(StreamThread.setting).isStated)
      throw refusal("continuous processing")

  private def refusal(trigger: String): BadCall = new BadCall(
    "bad_terms",
    s"a query with a deadline or a policy cannot have $trigger: admission says when its " +
      "batches begin. Start it without a trigger, or without deadline and policy")

  private def begin(
      query: String,
      run: String,
      source: SparkDataStream with AdmittedSource): Option[QueryAdmission] = {
    val trigger = StreamThread.triggerOf(query)
    val isAvailableNow = trigger == TriggerKind.AvailableNow
    // The plan is not there yet when Spark asks a source that does not know this trigger.
    if (trigger == TriggerKind.Once || (isAvailableNow && !knowsAvailableNow(source))) None
    else {
      val all = RunningQuery.sourcesOf(query).distinct
      val admitted = all.collect { case each: SparkDataStream with AdmittedSource => each }
      val stated = Terms.merge(
        admitted.map(_.statedTerms),
        StatedTerms.read(StreamThread.setting),
        StreamThread.windowSlideMs(query))
      val common = stated
        .filter(_ => !isAvailableNow || all.forall(knowsAvailableNow))
        .map(terms => make(query, run, admitted, terms, isAvailableNow))
      if (common.isDefined && admitted.size < all.size) {
        val others = all.filterNot(admitted.contains(_)).mkString(", ")
        logWarning(s"query $query has terms, and sources that cannot be held: $others. They begin " +
          "batches by themselves; add penstock.PenstockExtensions to spark.sql.extensions")
      }
      admitted.foreach(_.admission = Some(common))
      common
    }
  }

  private def make(
      query: String,
      run: String,
      sources: Seq[SparkDataStream with AdmittedSource],
      terms: Terms,
      isAvailableNow: Boolean): QueryAdmission = {
    val servers = sources.map(_.connection).distinctBy(_.url)
    if (servers.size > 1) {
      throw new BadCall(
        "bad_terms",
        s"sources of query $query are of ${servers.map(_.url).mkString(" and ")}; a batch is cut " +
          "for all sources together, so a query with a deadline or a policy has one server")
    }
    StreamThread.context.foreach(JvmResources.here.watch)
    val plans = JvmResources.here.devicePlans.asking(run)
    val notes = new UntoldNotes(JvmResources.here.planNotes, run)
    new QueryAdmission(
      query, plans, notes, sources, terms, JvmResources.here.gateways.to(servers.head), isAvailableNow,
      JvmResources.here.clock)
  }

  private def knowsAvailableNow(source: SparkDataStream): Boolean =
    source.isInstanceOf[SupportsTriggerAvailableNow]

  private def holdMs(inputs: Seq[BatchInput]): Long =
    if (inputs.forall(_.isInstanceOf[LogInput])) HoldMs else LookMs

  private def isNothing(input: BatchInput, share: Share): Boolean = (input, share) match {
    case (log: LogInput, Share.LogEnd(admission)) => admission.latest <= log.after
    case (offer: Offer, _) => offer.isEmpty
    case _ => false
  }

  /** The order of the tasks of the calling thread's jobs: ours, or the one Spark has outside our pool. */
  private def schedule: String =
    if (StreamThread.isInPool) Keys.Schedule.value(StreamThread.setting)
    else if (StreamThread.isSharedOutsidePool) Keys.FairSchedule
    else Keys.SparkSchedule

  /** A batch without data has its deadline from now on. */
  private def tellJobs(
      query: String,
      deadlineMs: Option[Double],
      leftMs: Option[Double],
      weight: Double,
      clock: Clock): Unit =
    StreamThread.setJobs(query, leftMs.orElse(deadlineMs), weight, clock)
}
