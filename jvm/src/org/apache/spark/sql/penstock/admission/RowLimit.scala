// Scala because: limits of a batch are objects of Spark, which sources in its JVM are asked with.
package org.apache.spark.sql.penstock.admission

import org.apache.spark.sql.connector.read.streaming.{CompositeReadLimit, ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows}
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceReadLimit

import penstock.wire.Json

/** Limits of rows. A source that is written in Python has them in a form of its own. */
private[admission] object RowLimit {
  private val PythonRows = "ReadMaxRows"
  private val PythonAll = "ReadAllAvailable"

  /** The rows that a limit allows; None if it is not one of rows. */
  def of(limit: ReadLimit): Option[Long] = limit match {
    case most: ReadMaxRows => Some(most.maxRows())
    case several: CompositeReadLimit => several.getReadLimits.toSeq.flatMap(of(_)).minOption
    case python: PythonStreamingSourceReadLimit =>
      Option.when(kindOf(python) == PythonRows)(Json.readTree(python.json).path("max_rows").asLong())
    case _ => None
  }

  /** Whether it is no limit. */
  def isAll(limit: ReadLimit): Boolean = limit match {
    case _: ReadAllAvailable => true
    case python: PythonStreamingSourceReadLimit => kindOf(python) == PythonAll
    case _ => false
  }

  /** The limit without a least number of rows: admission says when a batch begins. */
  def mostOf(limit: ReadLimit): ReadLimit = limit match {
    case _: ReadMinRows => ReadLimit.allAvailable()
    case several: CompositeReadLimit =>
      val limits = several.getReadLimits.filterNot(_.isInstanceOf[ReadMinRows])
      if (limits.isEmpty) ReadLimit.allAvailable() else ReadLimit.compositeLimit(limits)
    case other => other
  }

  /** The user's limit and so many rows, whichever is less, in the form that the user's has. */
  def smaller(limit: ReadLimit, rows: Long): ReadLimit = {
    val least = math.min(rows, of(limit).getOrElse(rows))
    limit match {
      case _: PythonStreamingSourceReadLimit =>
        val stated = Json.createObjectNode().put("_type", PythonRows).put("max_rows", least)
        PythonStreamingSourceReadLimit(stated.toString)
      case _ => ReadLimit.maxRows(least)
    }
  }

  private def kindOf(limit: PythonStreamingSourceReadLimit): String =
    Json.readTree(limit.json).path("_type").asText()
}
