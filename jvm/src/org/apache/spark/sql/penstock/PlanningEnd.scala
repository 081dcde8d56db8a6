// Scala because: Spark tells when it had planned a query by objects of the driver's JVM only.
package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** The end of a query's planning. In Spark's package because an event shows its plan only there. */
object PlanningEnd {

  /** When the plan of a finished SQL execution was ready; None where Spark has not kept it. */
  def ofMs(ended: SparkListenerSQLExecutionEnd): Option[Long] = for {
    planned <- Option(ended.qe)
    phase <- planned.tracker.phases.get(QueryPlanningTracker.PLANNING)
  } yield phase.endTimeMs
}
