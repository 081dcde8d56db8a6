// Scala because: columns are known by the ids of Spark's attributes, which only the planner has.
package org.apache.spark.sql.penstock.columnar

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExprId, NamedExpression}

/**
 * Where values are in the rows between two steps of a pipeline.
 *
 * @param places columns, by the ids of Spark's attributes
 * @param structs the fields of parsed texts, by the expression or attribute that stands for all of them
 * @param width the number of columns
 */
private[columnar] final case class Columns(
    places: Map[ExprId, Int],
    structs: Map[Expression, IndexedSeq[Int]],
    width: Int) {

  /** With the columns of a table after these. */
  def joinedWith(columns: Seq[Attribute]): Columns = {
    val added = columns.zipWithIndex.map { case (column, place) => column.exprId -> (width + place) }
    copy(places = places ++ added, width = width + columns.size)
  }

  /** With fields after these, of which those of `struct` are at some places among them. */
  def parsedTo(struct: Expression, fields: Int, ofStruct: IndexedSeq[Int]): Columns =
    copy(
      structs = structs + (struct.canonicalized -> ofStruct.map(width + _)),
      width = width + fields)

  def fieldsOf(struct: Expression): Option[IndexedSeq[Int]] = structs.get(struct.canonicalized)
}

private[columnar] object Columns {

  def of(columns: Seq[NamedExpression]): Columns =
    Columns(columns.map(_.exprId).zipWithIndex.toMap, Map.empty, columns.size)
}
