// Scala because: Spark makes Java code of expressions, and ours is one of them.
package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, LeafExpression, LessThanOrEqual, Literal}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, JavaCode}
import org.apache.spark.sql.types.{DataType, LongType}

/**
 * A number that generated code refers to, where Spark writes a literal into the code. Each batch
 * has another watermark; with this the code is the same in all of them, and compiled once.
 */
private[sql] final case class ReferencedLong(number: Long) extends LeafExpression {
  override def nullable: Boolean = false

  override def dataType: DataType = LongType

  override def eval(input: InternalRow): Any = number

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val reference = ctx.addReferenceObj("watermark", java.lang.Long.valueOf(number), "java.lang.Long")
    ExprCode.forNonNullValue(JavaCode.expression(s"$reference.longValue()", LongType))
  }

  override def toString: String = number.toString
}

private[sql] object ReferencedLong {

  /** A comparison with a watermark, as Spark makes it, that refers to the watermark. */
  def in(comparison: Expression): Expression = comparison match {
    case LessThanOrEqual(time, Literal(number: Long, LongType)) =>
      LessThanOrEqual(time, ReferencedLong(number))
    case other => other
  }

  /** Whether it is a comparison as Spark makes it, or one that `in` has made. */
  def isKnown(comparison: Expression): Boolean = in(comparison) match {
    case LessThanOrEqual(_, _: ReferencedLong) => true
    case _ => false
  }
}
