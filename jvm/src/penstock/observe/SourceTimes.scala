// Scala because: Spark takes the metrics of a source as objects of these interfaces.
package penstock.observe

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/**
 * A time that tasks of a source measure, in ns, summed over them; in Spark's UI too. Spark reports
 * it under its description. (A sink has no such metric, as Spark asks for it before the last
 * append: its times come with the commit message.)
 */
sealed abstract class SourceTime(
    override val name: String,
    override val description: String)
    extends CustomSumMetric {

  def of(ns: Long): CustomTaskMetric = SourceTime.OfTask(name, ns)
}

/** How long tasks have waited for pages of the log. */
final class FetchTime
    extends SourceTime("penstockFetchNs", "waiting for pages of the log (ns)")

/** From a task's start to the source's opening: its plan is read, its operators are made. */
final class OpenTime extends SourceTime("penstockOpenNs", "before the log is read (ns)")

/**
 * From the source's opening to its end: with the wait for pages, and with what the operators above
 * do with a row before they ask for the next one.
 */
final class ReadTime extends SourceTime("penstockReadNs", "reading rows of the log (ns)")

object SourceTime {
  private final case class OfTask(override val name: String, override val value: Long)
      extends CustomTaskMetric

  val Fetch = new FetchTime
  val Open = new OpenTime
  val Read = new ReadTime

  def all: Array[CustomMetric] = Array(Fetch, Open, Read)
}

/** The start of the task that the calling thread is at. */
object TaskStart {
  private val started = new ThreadLocal[Option[Started]] {
    override def initialValue(): Option[Started] = None
  }

  def begin(nowNs: Long, stamp: Option[TaskStamp]): Unit = started.set(Some(Started(nowNs, stamp)))

  /** 0 where the thread is at no task. */
  def sinceNs(nowNs: Long): Long = started.get().fold(0L)(nowNs - _.atNs)

  /** That of the task, if tasks are stamped here. */
  def stamp: Option[TaskStamp] = started.get().flatMap(_.stamp)

  private final case class Started(atNs: Long, stamp: Option[TaskStamp])
}
