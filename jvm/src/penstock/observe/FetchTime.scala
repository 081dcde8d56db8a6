// Scala because: Spark takes the metrics of a source as objects of these interfaces.
package penstock.observe

import org.apache.spark.sql.connector.metric.{CustomSumMetric, CustomTaskMetric}

/**
 * How long tasks of a source have waited for pages of the log; in Spark's UI too. (A sink has no
 * such metric, as Spark asks for it before the last append: its time comes with the commit message.)
 */
final class FetchTime extends CustomSumMetric {
  override def name: String = FetchTime.Name
  override def description: String = FetchTime.Description
}

object FetchTime {
  private[observe] val Name = "penstockFetchNs"

  /** Spark reports a metric under its description. */
  private[observe] val Description = "waiting for pages of the log (ns)"

  /** Of one task. */
  final case class Waited(override val value: Long) extends CustomTaskMetric {
    override def name: String = Name
  }
}
