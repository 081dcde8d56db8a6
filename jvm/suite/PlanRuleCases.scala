package org.apache.spark.sql.penstock.columnar

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, EqualTo, Literal}
import org.apache.spark.sql.execution.{FilterExec, SparkPlan}
import org.apache.spark.sql.execution.joins.BroadcastRows
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.{PlanAttempt, ReasonSet}
import org.apache.spark.sql.penstock.eviction.EvictionRule
import org.apache.spark.sql.penstock.windows.PaneRule

import penstock.BadCall
import penstock.settings.Keys

import Checks._

/** Rules for panes, devices and eviction without a query: what they do where something fails or is too large. */
object PlanRuleCases extends Cases {

  /** A node below which nobody can look. */
  private final case class Unreadable() extends SparkPlan {
    override def children: Seq[SparkPlan] = throw new IllegalStateException("planned by the case")
    override def output: Seq[Attribute] = Nil
    override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException
    override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): SparkPlan = this
  }

  /** A node whose children another release of Spark names otherwise. */
  private final case class Renamed() extends SparkPlan {
    override def children: Seq[SparkPlan] = throw new NoSuchMethodError("planned by the case")
    override def output: Seq[Attribute] = Nil
    override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException
    override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): SparkPlan = this
  }

  check("a_rule_that_fails_leaves_the_plan_as_it_is", once) { _ =>
    Seq(Unreadable(), Renamed()).foreach { plan =>
      holds(s"panes leave ${plan.nodeName} to Spark")(PaneRule(plan) eq plan)
      holds(s"eviction leaves ${plan.nodeName} to Spark")(EvictionRule(plan) eq plan)
      val conf = SQLConf.get
      conf.setConfString(Keys.Devices.name, Keys.CpuDevices)
      try holds(s"devices leave ${plan.nodeName} to panes")(DeviceRule(plan) eq plan)
      finally conf.unsetConf(Keys.Devices.name)
    }
  }

  check("what_fails_is_a_reason_and_what_is_refused_in_a_sentence_of_ours_ends_the_query", once) { _ =>
    val reason = PlanAttempt.of[String](throw new MatchError("a node"))(identity)
    equal("the reason", reason.takeWhile(_ != '('), "planning it failed: scala.MatchError: a node ")
    val lacking = PlanAttempt.of[String](throw new NoSuchMethodError("of another release"))(identity)
    equal("a method that is gone", lacking, "planning it failed: java.lang.NoSuchMethodError: of another release")
    fails("a refusal", "set it otherwise") {
      PlanAttempt.of[String](throw new BadCall("bad_setting", "set it otherwise"))(identity)
    }
  }

  check("a_log_has_a_reason_once", once) { _ =>
    val said = new ReasonSet
    equal("at first and again", Seq.fill(2)(said.isNew("a reason")), Seq(true, false))
    equal("of many", (1 to 500).count(number => said.isNew(s"reason $number")), 99)
  }

  check("the_text_of_an_operation_is_cut_between_characters", once) { _ =>
    def text(letters: Int): String = OperationText.of(
      FilterExec(EqualTo(Literal("a" * letters + "😀" * 9), Literal("x")), Unreadable()))
    (85 to 100).foreach { letters =>
      val short = text(letters)
      equal(s"a text behind $letters letters, sent and read", new String(short.getBytes(UTF_8), UTF_8), short)
      holds(s"it is short: $short")(short.codePointCount(0, short.length) <= 101)
    }
    equal("one that is short enough", text(1), "('a😀😀😀😀😀😀😀😀😀' = 'x')")
  }

  check("a_table_that_is_too_large_is_not_read_to_its_end", once) { _ =>
    // Without end, each key twice, and with two rows of 8 bytes.
    def keys: Iterator[InternalRow] = Iterator.from(0).map(number => InternalRow(number / 2))
    def rowsOf(key: InternalRow): Iterator[InternalRow] = Iterator.fill(2)(InternalRow(key.getInt(0)))
    equal("all of it", BroadcastRows.within(keys, rowsOf, 4096), None)
    equal("rows without end of one key", BroadcastRows.within(keys, _ => Iterator.continually(InternalRow(1)), 4096), None)
    val some = BroadcastRows.within(keys.take(6), rowsOf, 48)
    equal("what there is room for", some.map(_.map(_.getInt(0))), Some(Seq(0, 0, 1, 1, 2, 2)))
    equal("where there is less", BroadcastRows.within(keys.take(6), rowsOf, 47), None)
  }
}
