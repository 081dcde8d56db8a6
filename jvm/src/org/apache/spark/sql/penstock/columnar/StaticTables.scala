// Scala because: a static table is rows of Spark's JVM, which are sent with a pipeline as Arrow.
package org.apache.spark.sql.penstock.columnar

import java.util.Base64

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, UnsafeProjection}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.arrow.ArrowConverters
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastRows}
import org.apache.spark.sql.types.{StructField, StructType}

import penstock.wire.Json

/** The sides of a join of a stream with a table that Spark broadcasts. */
private[columnar] final case class JoinSides(
    stream: SparkPlan,
    streamKeys: Seq[Expression],
    table: SparkPlan,
    tableKeys: Seq[Expression])

/**
 * The static tables of joins below an aggregate. Spark makes and broadcasts them anew with every batch;
 * they are read from there, so that a table that changes is seen as Spark sees it.
 */
private[columnar] object StaticTables {

  /** A larger table is left to Spark: it would be sent with every task. */
  val BytesMax: Long = 4L << 20

  /** Why an aggregate over one is not made by workers. */
  val TooLarge: String = s"the table of a join is larger than ${BytesMax >> 20} MB"
  private val JoinStep = "join"

  def sidesOf(join: BroadcastHashJoinExec): JoinSides = join.buildSide match {
    case BuildRight => JoinSides(join.left, join.leftKeys, join.right, join.rightKeys)
    case BuildLeft => JoinSides(join.right, join.rightKeys, join.left, join.leftKeys)
  }

  /** The joins that rows of the stream go through, from the bottom up. */
  private def joinsBelow(plan: SparkPlan): Seq[BroadcastHashJoinExec] = plan match {
    case join: BroadcastHashJoinExec => joinsBelow(sidesOf(join).stream) :+ join
    case unary: UnaryExecNode => joinsBelow(unary.child)
    case _ => Nil
  }

  /**
   * A pipeline's description with the tables of its joins in it; none if one is too large.
   *
   * @param places the columns of each table that are sent, from the bottom join up
   */
  def filled(json: String, plan: SparkPlan, places: Seq[Seq[Int]]): Option[String] =
    if (places.isEmpty) Some(json)
    else {
      val streams = joinsBelow(plan).zip(places).map { case (join, columns) =>
        streamOf(sidesOf(join).table, columns)
      }
      Option.when(streams.forall(_.isDefined))(withTables(json, streams.flatten))
    }

  private def withTables(json: String, streams: Seq[Array[Byte]]): String = {
    val description = Json.readTree(json).asInstanceOf[ObjectNode]
    val joins = description.get("steps").asScala.filter(_.get("step").asText == JoinStep)
    joins.zip(streams).foreach { case (step, stream) =>
      step.asInstanceOf[ObjectNode].put("table", Base64.getEncoder.encodeToString(stream))
    }
    description.toString
  }

  /** The rows of a table as a stream of Arrow. */
  private def streamOf(table: SparkPlan, places: Seq[Int]): Option[Array[Byte]] =
    BroadcastRows.of(table, BytesMax).map { rows =>
      val columns: Seq[Attribute] = places.map(table.output)
      val schema = StructType(columns.zipWithIndex.map { case (column, place) =>
        StructField(s"c$place", column.dataType)
      })
      val sent = UnsafeProjection.create(columns, table.output)
      arrowOf(rows.iterator.map(sent), rows.isEmpty, schema)
    }

  private def arrowOf(rows: Iterator[InternalRow], isEmpty: Boolean, schema: StructType): Array[Byte] =
    if (isEmpty)
      ArrowConverters.createEmptyArrowBatch(
        schema, "UTC", errorOnDuplicatedFieldNames = true, largeVarTypes = false)
    else {
      // All rows in one batch.
      val batches = ArrowConverters.toBatchWithSchemaIterator(
        rows, schema, 0L, 0L, "UTC", errorOnDuplicatedFieldNames = true, largeVarTypes = false)
      try batches.next()
      finally batches.close()
    }
}
