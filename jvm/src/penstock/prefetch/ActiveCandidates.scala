// Scala because: the rule that plans a batch asks it on the stream thread of the driver's JVM.
package penstock.prefetch

import scala.collection.mutable

import org.apache.spark.sql.SparkSession

import penstock.settings.Keys
import penstock.wire.Json

/**
 * What Spark has told the driver of a run's tasks.
 *
 * @param hasFailedAttempts whether an attempt of a task of a batch has failed
 * @param shuffleBytes that the tasks of a run have written so far
 */
final case class BatchFacts(
    hasFailedAttempts: (String, Long) => Boolean,
    shuffleBytes: String => Long)

/**
 * The controllers of all running queries, one for each stateful operator, and the counts that they
 * decide by. On the driver; JvmResources owns it and ends each run with its query.
 *
 * @param countsHere takes what this JVM has counted of a run; other JVMs send theirs
 * @param relayed hints of all runs that went by the driver
 */
final class ActiveCandidates(
    countsHere: String => Seq[PrefetchCounts],
    lookaheads: Lookaheads,
    facts: BatchFacts,
    relayed: RelayedHints) {
  import ActiveCandidates._

  private val runs = mutable.LinkedHashMap.empty[String, mutable.SortedMap[Long, OperatorControl]]
  private val endedRuns = mutable.LinkedHashSet.empty[String]

  /** From where keys are hinted in the batch that the calling stream thread plans. */
  def of(run: String, operator: Long): Set[Candidate] = {
    val mode = Keys.Prefetch.value(setting)
    Candidate.named(mode) match {
      case Some(candidate) => control(run, operator)(_.fix(candidate, slackUs(run, operator)))
      case None if mode == "auto" => batchOfThisThread.fold(Set.empty[Candidate])(decide(run, operator, _))
      case None => Set.empty
    }
  }

  /** Counts of another JVM; those of a run that has ended are dropped, as nobody would forget them again. */
  def counted(run: String, counts: Seq[PrefetchCounts]): Unit = synchronized {
    for (count <- counts; operator <- OperatorCounts.operatorOf(count.store) if !endedRuns(run)) {
      control(run, operator)(_.counted(count))
    }
  }

  /** The query has terminated. Tasks and stores of it that go on for a while count for nothing from now on. */
  def endRun(run: String): Unit = synchronized {
    runs -= run
    endedRuns += run
    if (endedRuns.size > RunsMax) endedRuns -= endedRuns.head
    ()
  }

  /** How many runs are known. */
  def size: Int = synchronized(runs.size)

  /** All that is known of a run, as JSON; no operators if it keeps no state in our cache. */
  def json(run: String): String = synchronized {
    counted(run, countsHere(run))
    val all = Json.createObjectNode()
    all.put("shuffle_bytes", facts.shuffleBytes(run))
    // Read first: a block that is passed on meanwhile has not arrived before.
    val arrived = relayed.arrivedCount
    all.putObject("relayed").put("passed_on", relayed.passedCount)
      .put("arrived", arrived).put("dropped", relayed.droppedCount)
    val operators = all.putArray("operators")
    val planned = lookaheads.of(run).filterNot(_ => endedRuns(run)).map(each => each.operator -> each).toMap
    planned.keys.foreach(control(run, _)(identity))
    runs.get(run).toSeq.flatMap(_.values).foreach { control =>
      control.fill(operators.addObject(), planned.get(control.operator))
    }
    all.toString
  }

  /** Sums over the operators of a run, for Spark's progress; nothing where nothing was read. */
  def metrics(run: String): Map[String, String] = synchronized {
    counted(run, countsHere(run))
    val operators = runs.get(run).toSeq.flatMap(_.values)
    val numbers = operators.map(_.numbers).foldLeft(Map.empty[String, Long]) { (sums, more) =>
      more.map { case (name, number) => name -> (sums.getOrElse(name, 0L) + number) }
    }
    val active = operators.map(each => s"${each.operator}: ${each.activeNow.mkString(" ")}")
    if (numbers.values.sum == 0) Map.empty
    else numbers.map { case (name, number) => name -> number.toString } + ("prefetchFrom" -> active.mkString(", "))
  }

  private def decide(run: String, operator: Long, batch: Long): Set[Candidate] = synchronized {
    counted(run, countsHere(run))
    val terms = ControlTerms(
      Keys.PrefetchUnusedMax.value(setting),
      Keys.PrefetchMargin.value(setting) * UsInMs)
    control(run, operator) {
      _.decide(
        batch,
        terms,
        lookaheads.of(run).find(_.operator == operator).fold(Candidate.all)(_.candidates),
        slackUs(run, operator),
        facts.hasFailedAttempts(run, batch - 1))
    }
  }

  private def slackUs(run: String, operator: Long): Map[Candidate, Long] =
    lookaheads.slackMs(run, operator).map { case (each, ms) => each -> ms * UsInMs }

  private def control[A](run: String, operator: Long)(act: OperatorControl => A): A = synchronized {
    val operators = runs.getOrElseUpdate(run, mutable.SortedMap.empty)
    if (runs.size > RunsMax) runs -= runs.head._1
    act(operators.getOrElseUpdate(operator, new OperatorControl(run, operator)))
  }
}

private object ActiveCandidates {
  val UsInMs = 1000L

  /** More than run on one driver, or have ended just now; of the rest the oldest is forgotten. */
  val RunsMax = 200

  /** A local property that Spark's stream thread gives to its jobs. */
  val BatchKey = "streaming.sql.batchId"

  def setting(key: String): Option[String] =
    SparkSession.getActiveSession.flatMap(_.conf.getOption(key))

  def batchOfThisThread: Option[Long] = SparkSession.getActiveSession
    .flatMap(session => Option(session.sparkContext.getLocalProperty(BatchKey)))
    .flatMap(_.toLongOption)
}
