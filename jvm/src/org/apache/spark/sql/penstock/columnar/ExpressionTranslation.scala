// Scala because: it reads expressions of Spark's physical plans, objects of the driver's JVM.
package org.apache.spark.sql.penstock.columnar

import scala.util.control.NoStackTrace

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.EvalMode.{ANSI, TRY}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import penstock.wire.Json

/** Something in a plan that pipelines do not have; the message ends the sentence "left …, because". */
private[columnar] final class NotTaken(reason: String) extends Exception(reason) with NoStackTrace

/**
 * Expressions as `penstock.devices.operators.expressions` reads them. What is not here, or is with
 * another type than it is tried with, is refused: Spark then does all of it.
 *
 * @param columns where the values of a row are
 */
private[columnar] final class ExpressionTranslation(columns: Columns) {
  import ExpressionTranslation._

  def apply(expression: Expression): ObjectNode = expression match {
    case attribute: Attribute => column(attribute)
    case GetStructField(struct, ordinal, _) => fieldOf(struct, ordinal)
    case Alias(child, _) => apply(child)
    case KnownNotNull(child) => apply(child)
    case KnownNullable(child) => apply(child)
    case KnownFloatingPointNormalized(child) => apply(child)
    case literal: Literal => constant(literal.value, literal.dataType)
    case cast: Cast => castOf(cast)
    case arithmetic: BinaryArithmetic => arithmeticOf(arithmetic)
    case UnaryMinus(child, fails) if isNumber(child) => call("negate", expression, fails)(child)
    case Abs(child, fails) if isNumber(child) => call("abs", expression, fails)(child)
    case Floor(child, fails) if child.dataType == DoubleType =>
      call("floor", expression, fails)(child)
    case UnscaledValue(child) => call("unscaled", expression)(child)
    case NormalizeNaNAndZero(child) if isFraction(child.dataType) =>
      call("normalized", expression)(child)
    case other => conditionOf(other)
  }

  /** The start of the pane of a time. */
  def pane(time: Expression, slideUs: Long, offsetUs: Long): ObjectNode = {
    val node = called("pane", time.dataType, fails = false, Seq(apply(time)))
    node.putArray("parameters").add(slideUs).add(offsetUs)
    node
  }

  private def conditionOf(expression: Expression): ObjectNode = expression match {
    case And(left, right) => call("and", expression)(left, right)
    case Or(left, right) => call("or", expression)(left, right)
    case Not(child) => call("not", expression)(child)
    case IsNull(child) => call("is_null", expression)(child)
    case IsNotNull(child) => call("is_not_null", expression)(child)
    case IsNaN(child) => call("is_nan", expression)(child)
    case EqualTo(left, right) => call("equal", expression)(left, right)
    case EqualNullSafe(left, right) => call("equal_null_safe", expression)(left, right)
    case LessThan(left, right) => call("less", expression)(left, right)
    case LessThanOrEqual(left, right) => call("less_equal", expression)(left, right)
    case GreaterThan(left, right) => call("greater", expression)(left, right)
    case GreaterThanOrEqual(left, right) => call("greater_equal", expression)(left, right)
    case If(condition, yes, no) => call("case", expression)(condition, yes, no)
    case CaseWhen(branches, otherwise) =>
      val pairs = branches.flatMap { case (condition, value) => Seq(condition, value) }
      call("case", expression)(pairs ++ otherwise: _*)
    case Coalesce(children) => call("coalesce", expression)(children: _*)
    case In(value, members) if members.forall(_.foldable) && !isFraction(value.dataType) =>
      memberOf(expression, value, members.map(_.eval()))
    case InSet(value, members) if !isFraction(value.dataType) =>
      memberOf(expression, value, members.toSeq)
    case StartsWith(text, pattern: Literal) => call("starts_with", expression)(text, pattern)
    case EndsWith(text, pattern: Literal) => call("ends_with", expression)(text, pattern)
    case Contains(text, pattern: Literal) => call("contains", expression)(text, pattern)
    case Length(text) if text.dataType == StringType => call("length", expression)(text)
    case other => throw new NotTaken(s"${other.prettyName} is not among the functions of pipelines")
  }

  private def arithmeticOf(arithmetic: BinaryArithmetic): ObjectNode = {
    val (name, mode) = arithmetic match {
      case Add(_, _, context) => ("add", context.evalMode)
      case Subtract(_, _, context) => ("subtract", context.evalMode)
      case Multiply(_, _, context) => ("multiply", context.evalMode)
      case Divide(_, _, context) if arithmetic.dataType == DoubleType =>
        ("divide", context.evalMode)
      case Remainder(_, _, context) if arithmetic.dataType.isInstanceOf[IntegralType] =>
        ("remainder", context.evalMode)
      case other => throw notTaken(other.prettyName, other.dataType)
    }
    val isExact = arithmetic.dataType match {
      case decimal: DecimalType => decimal.precision < DecimalType.MAX_PRECISION
      case other => other.isInstanceOf[NumericType]
    }
    if (mode == TRY || !isExact) throw notTaken(arithmetic.prettyName, arithmetic.dataType)
    call(name, arithmetic, mode == ANSI)(arithmetic.left, arithmetic.right)
  }

  private def castOf(cast: Cast): ObjectNode = {
    val isTaken = (cast.child.dataType, cast.dataType) match {
      case (from, to) if from == to => true
      case (_: IntegralType, _: IntegralType | FloatType | DoubleType) => true
      case (FloatType, DoubleType) => true
      case (DoubleType | FloatType, to: DecimalType) => to.precision <= Decimal.MAX_LONG_DIGITS
      case (from: IntegralType, to: DecimalType) =>
        to.precision - to.scale >= DecimalType.forType(from).precision
      case (from: DecimalType, to: DecimalType) =>
        to.scale >= from.scale && to.precision - to.scale >= from.precision - from.scale
      case _ => false
    }
    if (!isTaken || cast.evalMode == TRY) {
      val (from, to) = (cast.child.dataType.catalogString, cast.dataType.catalogString)
      throw new NotTaken(s"a cast from $from to $to is not among those of pipelines")
    }
    call("cast", cast, cast.evalMode == ANSI)(cast.child)
  }

  private def memberOf(expression: Expression, value: Expression, members: Seq[Any]): ObjectNode =
    called(
      "in",
      expression.dataType,
      fails = false,
      apply(value) +: members.map(constant(_, value.dataType)))

  private def column(attribute: Attribute): ObjectNode = {
    typeName(attribute.dataType)
    val place = columns.places.getOrElse(
      attribute.exprId,
      throw new NotTaken(s"column ${attribute.name} comes from elsewhere"))
    columnAt(place)
  }

  private def fieldOf(struct: Expression, ordinal: Int): ObjectNode = {
    val fields = columns.fieldsOf(struct).getOrElse(
      throw new NotTaken(s"a field of ${struct.sql} is not among the functions of pipelines"))
    columnAt(fields(ordinal))
  }

  private def call(name: String, expression: Expression, fails: Boolean = false)(
      arguments: Expression*): ObjectNode = {
    arguments.foreach(argument => typeName(argument.dataType))
    called(name, expression.dataType, fails, arguments.map(apply))
  }
}

private[columnar] object ExpressionTranslation {

  /** The name of a type that pipelines have. */
  def typeName(dataType: DataType): String = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType |
        DateType | TimestampType | TimestampNTZType | _: DecimalType =>
      dataType.catalogString
    // With another collation texts that differ may be equal.
    case text: StringType if text == StringType => "string"
    case other => throw new NotTaken(s"type ${other.catalogString} is not among those of pipelines")
  }

  /** A column by its place. */
  def columnAt(place: Int): ObjectNode =
    Json.createObjectNode().put("kind", "column").put("index", place)

  def notTaken(name: String, dataType: DataType): NotTaken =
    new NotTaken(s"$name of ${dataType.catalogString} is not among the functions of pipelines")

  private def called(
      name: String,
      dataType: DataType,
      fails: Boolean,
      arguments: Seq[ObjectNode]): ObjectNode = {
    val node = Json.createObjectNode().put("kind", "call").put("name", name)
    node.put("type", typeName(dataType)).put("is_ansi", fails)
    val all = node.putArray("arguments")
    arguments.foreach(all.add(_))
    node
  }

  private def constant(value: Any, dataType: DataType): ObjectNode = {
    val node = Json.createObjectNode().put("kind", "literal").put("type", typeName(dataType))
    value match {
      case null => node
      case flag: Boolean => node.put("value", flag)
      case number: Byte => node.put("value", number.toLong)
      case number: Short => node.put("value", number.toLong)
      case number: Int => node.put("value", number.toLong)
      case number: Long => node.put("value", number)
      // As texts, because JSON has no names for what is no number.
      case number: Float => node.put("value", number.toString)
      case number: Double => node.put("value", number.toString)
      case decimal: Decimal => node.put("value", decimal.toJavaBigDecimal.toPlainString)
      case text: UTF8String => node.put("value", text.toString)
      case other => throw new NotTaken(s"a constant of ${other.getClass.getSimpleName}")
    }
  }

  private def isFraction(dataType: DataType): Boolean =
    dataType == DoubleType || dataType == FloatType

  private def isNumber(expression: Expression): Boolean =
    expression.dataType.isInstanceOf[NumericType]
}
