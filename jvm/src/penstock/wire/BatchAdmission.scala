// Scala because: the stream thread asks with it, and is answered, before every batch.
package penstock.wire

/** One source's part of a question to admission. */
sealed trait BatchInput

/**
 * A stream of the log and how far it is read.
 *
 * @param number the number of the source among those of the query that read this stream, from 0
 */
final case class LogInput(
    stream: String,
    after: Long,
    number: Int,
    rowsMax: Option[Long],
    bytesMax: Option[Long],
    until: Option[Long],
    inline: InlineRequest)
    extends BatchInput

/**
 * What a batch may have of what waits in a source outside the log, as far as the source tells;
 * `ageMs` None if nothing waits.
 */
final case class Offer(
    rows: Option[Long] = None,
    bytes: Option[Long] = None,
    files: Option[Long] = None,
    ageMs: Option[Double] = None,
    cutsBy: String = Offer.ByNothing)
    extends BatchInput {
  def isEmpty: Boolean = ageMs.isEmpty
}

object Offer {
  val ByRows = "rows"
  val ByBytes = "bytes"
  val ByNothing = "nothing"
}

/**
 * What a finished batch has read and cost; `cut` is 0 for one without data. `plan` is how its planned
 * part ran.
 */
final case class BatchReport(
    cut: Long,
    rows: Long,
    bytes: Option[Long],
    hasData: Boolean,
    queuedMs: Long,
    planningMs: Long,
    coreMs: Long,
    longestTaskMs: Long,
    tasks: Int,
    visibleMs: Option[Long],
    plan: Option[PlanReport] = None)

/** What a rule of the plug-in says about one stateful operator, and since which batch of the run. */
final case class PlanNote(rule: String, operator: Long, text: String, sinceBatch: Long)

/** The question of a query with terms: may its next batch begin, and how far may it read? */
final case class BatchQuestion(
    query: String,
    name: Option[String],
    instance: Option[Long],
    application: String,
    cores: Int,
    inputs: Seq[BatchInput],
    isFirst: Boolean,
    mustCut: Boolean,
    reports: Seq[BatchReport],
    schedule: String,
    waitMs: Long,
    pipeline: Option[PlannablePipeline] = None,
    planNotes: Seq[PlanNote] = Nil)

/** One source's part of an answer. */
sealed trait Share

object Share {

  /** How far to read a stream of the log, as a source that asks alone is told. */
  final case class LogEnd(admission: Admission) extends Share
  case object All extends Share
  case object Nothing extends Share

  /** So many of what the source cuts by. */
  final case class UpTo(number: Long) extends Share
}

/**
 * The answer; `leftMs` is the time left to the deadline of the oldest row in the batch. `plan` is there
 * if the question had a pipeline and the batch was cut.
 */
final case class BatchAdmission(
    server: String,
    cut: Option[Long],
    shares: Map[Int, Share],
    leftMs: Option[Double],
    weight: Double,
    predictedMs: Option[Double],
    reason: String,
    policy: String,
    deadlineMs: Option[Double],
    plan: Option[BatchPlan] = None)
