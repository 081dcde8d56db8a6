// Scala because: it looks into the analysed plan of a query, an object of the driver's JVM.
package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, Literal, Remainder, TimeWindow}
import org.apache.spark.sql.catalyst.plans.logical.{Expand, LogicalPlan, Project}
import org.apache.spark.sql.types.Metadata

/**
 * The slide of the windows of a query. Spark's analysis has taken `window()` apart by then: what is
 * left of it is a marked column, and the remainder by the slide from which its values are made.
 */
object WindowSlide {
  private val MicrosInMs = 1000L

  /** The shortest slide of all windows in an analysed plan; of a tumbling one its length. */
  def msOf(analysed: LogicalPlan): Option[Long] = analysed
    .collect {
      case project: Project =>
        project.projectList.collect { case alias: Alias if isWindow(alias.metadata) => alias.child }
      case expand: Expand =>
        for {
          (column, index) <- expand.output.zipWithIndex if isWindow(column.metadata)
          projection <- expand.projections
        } yield projection(index)
    }
    .flatten
    .flatMap(slidesMs)
    .minOption

  private def isWindow(metadata: Metadata): Boolean = metadata.contains(TimeWindow.marker)

  private def slidesMs(column: Expression): Seq[Long] = column.collect { case by: Remainder =>
    by.right match {
      case Literal(micros: Long, _) => Some(math.max(1, micros / MicrosInMs))
      case _ => None
    }
  }.flatten
}
