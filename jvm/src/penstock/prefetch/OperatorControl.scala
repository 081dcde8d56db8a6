// Scala because: the planner asks it, and executors tell it, in the driver's JVM.
package penstock.prefetch

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.internal.Logging

/** One stateful operator of a run: its counts so far, and its controller. Under its run's lock. */
private[prefetch] final class OperatorControl(run: String, val operator: Long) extends Logging {
  import OperatorControl._

  private var controller = Controller(Candidate.all)
  private var total = OperatorCounts()
  private var sinceDecided = OperatorCounts()
  private var slackUs = Vector.empty[Map[Candidate, Long]]
  private var switches = Vector.empty[Switch]
  private var decidedBefore = -1L
  private var fixed = Option.empty[Candidate]

  def counted(counts: PrefetchCounts): Unit = {
    total += counts
    sinceDecided += counts
  }

  /** Hints come from one place, which the settings name, and from no other. */
  def fix(candidate: Candidate, lastSlackUs: Map[Candidate, Long]): Set[Candidate] = {
    fixed = Some(candidate)
    keepSlack(lastSlackUs)
    Set(candidate)
  }

  /**
   * The places from which hints come in a batch that is being planned. What the batches before it
   * counted is judged once, however often a batch is planned.
   */
  def decide(
      batch: Long,
      terms: ControlTerms,
      offered: Seq[Candidate],
      lastSlackUs: Map[Candidate, Long],
      hasFailedAttempts: Boolean): Set[Candidate] = {
    fixed = None
    val before = controller.copy(terms = terms)
    val (next, switch) = if (batch <= decidedBefore) before.offered(offered, batch - 1)
    else {
      val facts = OperatorBatch(
        batch - 1,
        sinceDecided.reads,
        sinceDecided.misses,
        sinceDecided.prefetches,
        lastSlackUs,
        sinceDecided.fetchUs,
        hasFailedAttempts)
      keepSlack(lastSlackUs)
      sinceDecided = OperatorCounts()
      decidedBefore = batch
      before.after(facts, offered)
    }
    controller = next
    switch.foreach(log)
    switches = (switches ++ switch).takeRight(SwitchesKept)
    controller.active.toSet
  }

  /** What the controller or the settings say. */
  def activeNow: Seq[Candidate] = fixed.fold(controller.active)(Seq(_))

  def numbers: Map[String, Long] = Map(
    "prefetchHits" -> total.hits,
    "prefetchMisses" -> total.misses,
    "prefetchUsed" -> total.used.values.sum,
    "prefetchUnused" -> total.unused.values.sum)

  /** As JSON; `planned` is what the batch planned last has of the operator. */
  def fill(node: ObjectNode, planned: Option[OperatorLookahead]): Unit = {
    node.put("operator", operator).put("name", planned.fold("")(_.name))
    fillNames(node, "candidates", planned.fold(Seq.empty[Candidate])(_.candidates))
    val reasons = node.putArray("left_out")
    planned.toSeq.flatMap(_.reasons).foreach(reason => reasons.add(reason))
    node.put("hits", total.hits).put("misses", total.misses).put("waited", total.waited)
    node.put("suppressed", total.suppressed).put("dropped", total.dropped).put("late", total.late)
    node.put("bytes", total.bytes.values.sum).put("evictions", total.evictions)
    node.put("kept_writes", total.keptWrites)
    node.put("hint_bytes", total.hintBytes).put("path_us", total.pathNs / 1000)
    fillNumbers(node.putObject("used"), total.used)
    fillNumbers(node.putObject("unused"), total.unused)
    fillNumbers(node.putObject("hinted"), total.hinted)
    val access = node.putObject("access_us")
    total.accessUs.foreach { case (boundUs, count) => access.put(boundUs.toString, count) }
    val slack = node.putArray("slack_us")
    slackUs.foreach(ofBatch => fillNumbers(slack.addObject(), ofBatch))
    fillNames(node, "active", planned.fold(activeNow)(last => Candidate.all.filter(last.active)))
    fillNames(node, "discarded", Candidate.all.filter(controller.discarded))
    val made = node.putArray("switches")
    switches.foreach { switch =>
      val shown = made.addObject().put("batch", switch.batch).put("reason", switch.reason)
      fillNames(shown, "active", switch.active)
    }
  }

  private def log(switch: Switch): Unit = {
    val places = if (switch.active.isEmpty) "nowhere" else switch.active.mkString(" and ")
    logInfo(s"keys of operator $operator of run $run are hinted from $places after batch " +
      s"${switch.batch}: ${switch.reason}")
  }

  private def keepSlack(lastUs: Map[Candidate, Long]): Unit =
    if (lastUs.nonEmpty) slackUs = (slackUs :+ lastUs).takeRight(SlackKept)

  private def fillNumbers(node: ObjectNode, numbers: Map[Candidate, Long]): Unit =
    numbers.toSeq.sortBy(_._1.rank).foreach { case (each, number) => node.put(each.name, number) }

  private def fillNames(node: ObjectNode, field: String, candidates: Seq[Candidate]): Unit = {
    val names = node.putArray(field)
    candidates.foreach(each => names.add(each.name))
  }
}

private object OperatorControl {

  /** The newest; whoever wants all has them in Spark's log. */
  val SwitchesKept = 20

  /** Of the last batches, for percentiles. */
  val SlackKept = 100
}
