package penstock.commit

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.LongAdder

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import penstock.Clock
import penstock.client.Gateway

/** How often each step of the commit of a run was taken, and how long it took in all and at most. */
final class Steps(clock: Clock) {
  import Steps._

  private val byName = new ConcurrentHashMap[String, Total]()

  def timed[A](step: String)(body: => A): A = {
    val start = clock.nanos
    try body
    finally took(step, clock.nanos - start)
  }

  def took(step: String, ns: Long): Unit =
    byName.computeIfAbsent(step, _ => new Total).add(ns)

  /** `{"flush": {"count": 3, "total_ms": 12.5, "max_ms": 6.1}, ...}` */
  def json: String = {
    val all = Gateway.Json.createObjectNode()
    byName.asScala.toSeq.sortBy(_._1).foreach { case (name, total) =>
      all
        .putObject(name)
        .put("count", total.count.sum())
        .put("total_ms", total.ns.sum() / 1e6)
        .put("max_ms", total.maxNs / 1e6)
    }
    all.toString
  }
}

/** Times what a JVM of a run does or waits for, and tells the driver, which sums it up. */
object StepTimes {
  private val ToldNs = 1000000L

  /** Only what took a millisecond: most waits are none, and a message for each would cost more. */
  def timed[A](run: String, step: String)(body: => A): A = {
    val clock = JvmResources.here.clock
    val start = clock.nanos
    try body
    finally {
      val ns = clock.nanos - start
      if (ns >= ToldNs) tell(run, Map(step -> ns))
    }
  }

  /** A time that is not heard of must not fail what it was taken of. */
  def tell(run: String, stepsNs: Map[String, Long]): Unit =
    try {
      JvmResources.here.releases.ask(Took(run, stepsNs))
      ()
    } catch { case NonFatal(_) => }
}

private object Steps {
  final class Total {
    val count = new LongAdder
    val ns = new LongAdder
    @volatile var maxNs = 0L

    def add(took: Long): Unit = {
      count.increment()
      ns.add(took)
      synchronized { maxNs = math.max(maxNs, took) }
    }
  }
}
