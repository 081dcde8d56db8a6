// Scala because: it takes the time of what tasks do and wait for, on the threads that do.
package penstock.commit.executor

import scala.util.control.NonFatal

import penstock.Clock
import penstock.commit.channel.{Took, WayToDriver}

/** Times what a JVM of a run does or waits for, and tells the driver, which sums it up. */
final class StepTimes(clock: Clock, toDriver: WayToDriver) {
  import StepTimes._

  /** Only what took a millisecond: most waits are none, and a message for each would cost more. */
  def timed[A](run: String, step: String)(body: => A): A = {
    val start = clock.nanos
    try body
    finally took(run, step, clock.nanos - start)
  }

  /** The same, of what has been timed already. */
  def took(run: String, step: String, ns: Long): Unit = if (ns >= ToldNs) tell(run, Map(step -> ns))

  /** A time that is not heard of must not fail what it was taken of. */
  def tell(run: String, stepsNs: Map[String, Long]): Unit =
    try {
      toDriver.ask(Took(run, stepsNs))
      ()
    } catch { case NonFatal(_) => }
}

private object StepTimes {
  val ToldNs = 1000000L
}
