package org.apache.spark.sql.penstock.eviction

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, LessThan, LessThanOrEqual, Literal}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks}
import org.apache.spark.sql.penstock.{ReferencedLong, SparkField}
import org.apache.spark.sql.types.TimestampType

import WatermarkCode.{Eviction, Late, Part, noteOf, referIn, referInSides}

import Checks._

/** What is said of code that compares times with the watermark, and of a Spark that has moved its fields. */
object WatermarkCases extends Cases {
  private val at = BoundReference(1, TimestampType, nullable = true)
  private val compared: Expression = LessThanOrEqual(at, Literal(1000L))

  /** An operator that compares single times, as Spark has it. */
  final class Comparing(late: Option[Expression], evicted: Option[Expression]) {
    lazy val forLate: Option[Expression] = late
    lazy val forEviction: Option[Expression] = evicted
  }

  /** An operator with two sides, as Spark has it. */
  final class Joining(val predicates: JoinStateWatermarkPredicates)

  private def late(name: String) =
    new SparkField[Comparing, Option[Expression]](classOf[Comparing], name, classOf[Option[_]])
  private val evicted = late("forEviction")
  private def sides(name: String) = new SparkField[Joining, JoinStateWatermarkPredicates](
    classOf[Joining], name, classOf[JoinStateWatermarkPredicates])

  private def joining(left: Option[Expression], right: Option[Expression]) =
    new Joining(JoinStateWatermarkPredicates(
      left.map(JoinStateKeyWatermarkPredicate(_, 1L)), right.map(JoinStateValueWatermarkPredicate(_, 1L))))

  private def noteOn(node: Comparing, lateField: String): String = noteOf(
    referIn(node, Late, late(lateField))(_.forLate) ++ referIn(node, Eviction, evicted)(_.forEviction))

  private def noteOn(node: Joining, field: String): String =
    noteOf(referInSides(node, sides(field))(_.predicates))

  private def isReferring(expression: Expression): Boolean = expression.exists(_.isInstanceOf[ReferencedLong])

  private def lost(owner: Class[_]): String = s"Spark $SPARK_VERSION has no field moved of class ${owner.getName}"

  private val unknown = "a comparison is none that this rule knows"

  check("code_that_refers_to_the_watermark_is_named", once) { _ =>
    val both = new Comparing(Some(compared), Some(compared))
    // An operator that is executed again has what the first time has made of it.
    Seq("at first", "again").foreach { time =>
      equal(time, noteOn(both, "forLate"), "code for late rows and eviction refers to the watermark")
    }
    holds("its late rows")(both.forLate.exists(isReferring))
    holds("its eviction")(both.forEviction.exists(isReferring))
    val join = joining(Some(compared), Some(compared))
    Seq("at first", "again").foreach { time =>
      equal(s"a join $time", noteOn(join, "predicates"), "code for eviction refers to the watermark")
    }
    holds("its left side")(join.predicates.left.exists(side => isReferring(side.expr)))
    holds("its right side")(join.predicates.right.exists(side => isReferring(side.expr)))
    val nothing = "it compares no times with a watermark"
    equal("no times", noteOn(new Comparing(None, None), "forLate"), nothing)
    equal("a join by no times", noteOn(joining(None, None), "predicates"), nothing)
  }

  check("a_field_that_this_spark_has_moved_is_named_and_the_others_are_used", once) { _ =>
    val node = new Comparing(Some(compared), Some(compared))
    equal("late rows", noteOn(node, "moved"),
      s"code for eviction refers to the watermark; code for late rows is left to Spark: ${lost(classOf[Comparing])}")
    holds("late rows are Spark's")(!node.forLate.exists(isReferring))
    holds("eviction is not")(node.forEviction.exists(isReferring))
    val join = joining(Some(compared), None)
    equal("a join", noteOn(join, "moved"),
      s"code for eviction is left to Spark: ${lost(classOf[Joining])}")
    holds("its predicates are Spark's")(!join.predicates.left.exists(side => isReferring(side.expr)))
  }

  check("a_comparison_of_another_shape_is_left_to_spark_with_the_reason", once) { _ =>
    val other: Expression = LessThan(at, Literal(1000L))
    equal("one of two", noteOn(new Comparing(Some(compared), Some(other)), "forLate"),
      s"code for late rows refers to the watermark; code for eviction is left to Spark: $unknown")
    val join = joining(Some(compared), Some(other))
    equal("one side", noteOn(join, "predicates"), s"code for eviction is left to Spark: $unknown")
    holds("the other side refers to it")(join.predicates.left.exists(side => isReferring(side.expr)))
    equal("a reason is said once", noteOf(Seq(Part(Late, Some("why")), Part(Eviction, Some("why")))),
      "code for late rows and eviction is left to Spark: why")
  }
}
