// Scala because: it reads the expressions of Spark's physical plans, objects of the driver's JVM.
package org.apache.spark.sql.penstock.columnar

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.{Alias, Expression}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

import penstock.ShortText

/** What an operation does, in a few words for people. */
private[columnar] object OperationText {
  private val CharactersMax = 100

  def of(node: SparkPlan): String = {
    val text = node match {
      case filter: FilterExec => sqlOf(filter.condition)
      case project: ProjectExec =>
        project.projectList.collect { case made: Alias => made.name }.mkString(", ")
      case join: BroadcastHashJoinExec =>
        s"on ${StaticTables.sidesOf(join).streamKeys.map(sqlOf).mkString(", ")}"
      case hash: HashAggregateExec =>
        val functions = hash.aggregateExpressions.map(sqlOf).mkString(", ")
        s"$functions by ${hash.groupingExpressions.map(_.name).mkString(", ")}"
      case _ => ""
    }
    ShortText.of(text, CharactersMax)
  }

  private def sqlOf(expression: Expression): String =
    Try(expression.sql).getOrElse(expression.prettyName)
}
