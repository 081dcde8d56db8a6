// Scala because: from_json and from_csv are expressions of Spark's planner with types and options.
package org.apache.spark.sql.penstock.columnar

import java.util.Locale

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.expressions.{CsvToStructs, Expression, JsonToStructs}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import penstock.wire.Json

/** Texts that a plan parses into structs, as steps that make a column of each field. */
private[columnar] object ParseTranslation {
  /** The kind of its steps. */
  val Parse = "parse"
  private val SeparatorOptions = Set("sep", "delimiter")
  private val NotSeparators = Set("\"", "\\", "\n", "\r", "\u0000")

  def textsIn(expressions: Seq[Expression]): Seq[Expression] = expressions
    .flatMap(_.collect { case text @ (_: JsonToStructs | _: CsvToStructs) => text })
    .distinctBy(_.canonicalized)

  /** The step that parses a text, and where columns are after it. */
  def of(text: Expression, columns: Columns): (ObjectNode, Columns) = text match {
    case json: JsonToStructs if json.options.isEmpty =>
      val struct = structOf(json.dataType)
      val step = stepOf("json", json.child, columns, struct.fields.map(f => f.name -> typeOf(f)))
      (step, columns.parsedTo(json, struct.size, struct.fields.indices))
    case csv: CsvToStructs =>
      val wanted = structOf(csv.dataType)
      val names = wanted.fieldNames.toSet
      // A field is known by its place in the line; those that nobody wants stay texts.
      val fields = csv.schema.fields.map { field =>
        field.name -> (if (names(field.name)) typeOf(field) else "string")
      }
      val step = stepOf("csv", csv.child, columns, fields).put("separator", separatorOf(csv.options))
      val places = wanted.fieldNames.map(csv.schema.fieldIndex).toIndexedSeq
      (step, columns.parsedTo(csv, fields.length, places))
    case other =>
      throw new NotTaken(s"${other.prettyName} with options is not among those of pipelines")
  }

  private def structOf(dataType: DataType): StructType = dataType match {
    case struct: StructType if !struct.fieldNames.contains(SQLConf.get.columnNameOfCorruptRecord) =>
      struct
    case other =>
      throw new NotTaken(s"parsing to ${other.catalogString} is not among the functions of pipelines")
  }

  /** Types whose texts mean the same in every session. */
  private def typeOf(field: StructField): String = field.dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DoubleType =>
      field.dataType.catalogString
    case text: StringType if text == StringType => "string"
    case other =>
      throw new NotTaken(s"parsing of ${other.catalogString} is not among those of pipelines")
  }

  private def stepOf(
      format: String,
      child: Expression,
      columns: Columns,
      fields: Array[(String, String)]): ObjectNode = {
    val step = Json.createObjectNode().put("step", Parse).put("format", format)
    step.set[ObjectNode]("text", new ExpressionTranslation(columns)(child))
    val list = step.putArray("fields")
    fields.foreach { case (name, kind) => list.addArray().add(name).add(kind) }
    step
  }

  private def separatorOf(options: Map[String, String]): String = {
    val separators = options.collect {
      case (name, value) if SeparatorOptions(name.toLowerCase(Locale.ROOT)) => value
    }
    val separator = separators.headOption.getOrElse(",")
    if (options.size > separators.size || separators.size > 1 || separator.length != 1 ||
      NotSeparators(separator))
      throw new NotTaken("from_csv with options is not among those of pipelines")
    separator
  }
}
