// Scala because: spark.sql.extensions names a JVM class; jobs have this full name in their
// settings.
package penstock

import org.apache.spark.sql.penstock.SparkMembers
import org.apache.spark.sql.penstock.admission.AdmissionRule
import org.apache.spark.sql.SparkSessionExtensions

/**
 * What the plug-in adds to Spark's planner: its rules on physical plans, and admission for the sources
 * of queries with a deadline or a policy.
 */
final class PenstockExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    SparkMembers.check()
    extensions.injectPostHocResolutionRule(_ => AdmissionRule)
    extensions.injectColumnar(_ => PlanRules)
  }
}
