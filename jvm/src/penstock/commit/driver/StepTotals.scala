// Scala because: threads of the driver's JVM add to these totals at each step of each batch.
package penstock.commit.driver

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.LongAdder

import scala.jdk.CollectionConverters._

import penstock.Clock
import penstock.wire.Json

/** How often each step of the commit of a run was taken, and how long it took in all and at most. */
final class StepTotals(clock: Clock) {
  import StepTotals._

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
    val all = Json.createObjectNode()
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

private object StepTotals {
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
