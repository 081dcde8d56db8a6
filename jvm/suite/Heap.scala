package org.apache.spark.sql.execution.streaming.state.contract

import java.lang.management.ManagementFactory
import javax.management.ObjectName

/** What is alive in this JVM. */
object Heap {
  private val Line = """\s*\d+:\s+(\d+)\s+\d+\s+(\S+).*""".r

  /** How many objects of each class of the plug-in are alive, after a collection. */
  def plugin: Map[String, Long] = {
    val commands = new ObjectName("com.sun.management:type=DiagnosticCommand")
    val asked = Array[AnyRef](Array.empty[String])
    val histogram = ManagementFactory.getPlatformMBeanServer
      .invoke(commands, "gcClassHistogram", asked, Array(classOf[Array[String]].getName))
    histogram.toString.linesIterator.collect {
      case Line(count, name) if name.startsWith("penstock.") || name.contains("AsyncRocksDB") =>
        name -> count.toLong
    }.toMap
  }

  /** By how much each has grown, of those that have grown by more than `most`. */
  def growth(before: Map[String, Long], most: Long): Map[String, Long] =
    plugin.map { case (name, count) => name -> (count - before.getOrElse(name, 0L)) }
      .filter(_._2 > most)
}
