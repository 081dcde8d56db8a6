// Scala because: Spark's planner applies rules of its own type to the plan of every batch.
package penstock

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.penstock.columnar.DeviceRule
import org.apache.spark.sql.penstock.eviction.EvictionRule
import org.apache.spark.sql.penstock.gate.GateRule
import org.apache.spark.sql.penstock.lookahead.LookaheadRule
import org.apache.spark.sql.penstock.windows.PaneRule

/**
 * The rules of the plug-in on a physical plan, in their order. Spark applies them when exchanges
 * are in their places and operators have their ids, and before it makes code of the plan.
 *
 *   1. Panes come first: they change what is below a shuffle, and others look at what is there.
 *   2. Devices take over what panes have left below a shuffle.
 *   3. Eviction stands above the operators whose scans it declares.
 *   4. Lookahead comes behind whatever changes what is below a shuffle or how state is read.
 *   5. The gate comes last: it stands at the root and must see the plan that is run.
 */
private[penstock] object PlanRules extends ColumnarRule {
  private val inOrder: Seq[Rule[SparkPlan]] =
    Seq(PaneRule, DeviceRule, EvictionRule, LookaheadRule, GateRule)

  override def preColumnarTransitions: Rule[SparkPlan] = AllInOrder

  private object AllInOrder extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan =
      inOrder.foldLeft(plan)((changed, rule) => rule(changed))
  }
}
