// Scala because: compiler, collector and HTTP client of the JVM count in the JVM.
package penstock.observe

import java.lang.management.ManagementFactory

import scala.jdk.CollectionConverters._

import org.apache.spark.metrics.source.CodegenMetrics
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator

import penstock.client.RequestTotals

/** What this JVM has done so far for all queries, by name. */
private[observe] final case class Counters(values: Seq[(String, Long)]) {
  def since(before: Counters): Seq[(String, Long)] = {
    val earlier = before.values.toMap
    values.map { case (name, value) => name -> (value - earlier.getOrElse(name, 0L)) }
  }
}

private[observe] object Counters {
  def now(requests: RequestTotals): Counters = {
    val collectors = ManagementFactory.getGarbageCollectorMXBeans.asScala
    Counters(Seq(
      "compilations" -> CodegenMetrics.METRIC_COMPILATION_TIME.getCount,
      "compile ns" -> CodeGenerator.compileTime,
      "gc ms" -> collectors.map(_.getCollectionTime).sum,
      "requests" -> requests.count,
      "request ns" -> requests.ns))
  }
}
