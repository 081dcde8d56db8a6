// Scala because: the local properties of Spark's threads, which it hands to every task set, have
// these names.
package penstock.schedule

import java.util.Properties

import penstock.Clock

/**
 * The properties by which the jobs of a batch carry its deadline to the scheduler. They are set on
 * the stream's thread whenever a batch may be cut; times are those of the driver's steady clock, so
 * that setting the machine's does not reorder batches.
 */
object TaskSetKeys {
  val Query = "penstock.query"
  val DeadlineAt = "penstock.deadlineAt"
  val Weight = "penstock.weight"

  /** The moment that is so far off, for `DeadlineAt`. */
  def deadlineAtMs(leftMs: Double, clock: Clock): Long = clock.steadyMs + math.round(leftMs)

  /**
   * What a task set says of itself when it comes. A text that is no number counts as not said: what
   * a user's code has put there must not stop a job.
   */
  def read(properties: Properties, clock: Clock): Terms = {
    def text(key: String): Option[String] =
      Option(properties).flatMap(known => Option(known.getProperty(key)))
    Terms(
      text(Query),
      text(DeadlineAt).flatMap(_.toLongOption),
      text(Weight).flatMap(_.toDoubleOption).filter(weight => weight > 0 && weight <= 1).getOrElse(1.0),
      clock.steadyMs)
  }

  final case class Terms(
      query: Option[String],
      deadlineAtMs: Option[Long],
      weight: Double,
      seenAtMs: Long) {

    def facts(key: String, job: Int, stage: Int, running: Int): TaskSetFacts =
      TaskSetFacts(key, job, stage, seenAtMs, running, query, deadlineAtMs, weight)
  }
}
