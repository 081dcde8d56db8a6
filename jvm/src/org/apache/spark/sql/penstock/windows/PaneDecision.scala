// Scala because: it looks into physical plans of Spark, which are objects of the driver's JVM.
package org.apache.spark.sql.penstock.windows

import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  CreateNamedStruct,
  EvalMode,
  Expression,
  ExprId,
  NamedExpression,
  PredicateHelper,
  TimeWindow
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  Average,
  Count,
  Max,
  Min,
  Sum
}
import org.apache.spark.sql.execution.{ExpandExec, FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.{BaseAggregateExec, HashAggregateExec}
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator

/** What becomes of the aggregate below the shuffle of one stateful operator. */
private[windows] sealed trait PaneDecision

private[windows] object PaneDecision extends PredicateHelper {

  /** It has no windows: nothing is done, and there is nothing to say. */
  case object NoWindows extends PaneDecision

  final case class LeftToSpark(reason: String) extends PaneDecision

  final case class Panes(aggregate: WindowedAggregate) extends PaneDecision

  /** Windows do not overlap, so that there is nothing to copy: Spark's plan is that of one pane. */
  final case class OneWindow(aggregate: WindowedAggregate) extends PaneDecision

  /**
   * Decides on the partial aggregate of a streaming aggregate, from the plan alone. Rows of one pane
   * may be aggregated before they are expanded if they are in the same windows whatever the rows
   * hold, and if nothing between the windows and the aggregate tells one window from another but
   * filters on the window alone, which can be applied as well when rows are aggregated.
   */
  def on(partial: BaseAggregateExec): PaneDecision = {
    if (!hasWindowsBelow(partial.child)) NoWindows
    else
      partial match {
        case hash: HashAggregateExec =>
          (for {
            _ <- refusal(hash)
            chain <- chainBelow(hash.child, Nil)
            windowed <- matched(hash, chain)
          } yield windowed).fold(LeftToSpark(_), ofWindowed)
        case other =>
          LeftToSpark(
            s"it is planned as ${other.nodeName}, for a function whose buffer has no fixed length")
      }
  }

  private def ofWindowed(windowed: WindowedAggregate): PaneDecision =
    if (windowed.windows.overlap) Panes(windowed) else OneWindow(windowed)

  /** Whether the rows of a plan have been given windows, in the same stage and operator. */
  private def hasWindowsBelow(plan: SparkPlan): Boolean = plan match {
    case expand: ExpandExec if expand.output.exists(isWindow) => true
    case project: ProjectExec if project.projectList.exists(makesWindow) => true
    case _: StatefulOperator | _: BaseAggregateExec | _: Exchange => false
    case other => other.children.exists(hasWindowsBelow)
  }

  private def isWindow(column: Attribute): Boolean = column.metadata.contains(TimeWindow.marker)

  /** Only the first column made from a time has it as its child; later ones name an attribute. */
  private def makesWindow(column: NamedExpression): Boolean = column match {
    case alias: Alias =>
      alias.metadata.contains(TimeWindow.marker) && alias.child.isInstanceOf[CreateNamedStruct]
    case _ => false
  }

  private def refusal(hash: HashAggregateExec): Either[String, Unit] = {
    val buffers = hash.aggregateExpressions.flatMap(_.aggregateFunction.inputAggBufferAttributes)
    val expected = hash.groupingExpressions.map(_.toAttribute) ++ buffers
    for {
      _ <- Either.cond(
        hash.resultExpressions.map(_.exprId) == expected.map(_.exprId),
        (),
        "its partial aggregate does not yield keys and buffers in their order")
      _ <- Either.cond(
        hash.groupingExpressions.forall(_.deterministic),
        (),
        "a key is not deterministic")
      _ <- hash.aggregateExpressions.flatMap(reasonAgainst).headOption.toLeft(())
    } yield ()
  }

  private def reasonAgainst(aggregate: AggregateExpression): Option[String] = {
    val function = aggregate.aggregateFunction
    val isMergedInAnyOrder = function match {
      case sum: Sum => sum.evalContext.evalMode != EvalMode.TRY
      case mean: Average => mean.evalMode != EvalMode.TRY
      case _: Count | _: Min | _: Max => true
      case _ => false
    }
    if (!isMergedInAnyOrder) Some(s"${function.prettyName} is none of sum, count, avg, min, max")
    else if (aggregate.isDistinct) Some(s"${function.prettyName} is over distinct values")
    else if (!function.deterministic || aggregate.filter.exists(!_.deterministic))
      Some(s"${function.prettyName} is over an expression that is not deterministic")
    else None
  }

  /** The filters and projections down to the windows, bottom first, and the rows that get these. */
  private def chainBelow(
      plan: SparkPlan,
      above: List[SparkPlan]): Either[String, (List[SparkPlan], WindowedRows)] = plan match {
    case project: ProjectExec if project.projectList.exists(makesWindow) =>
      Right((above, WindowedRows.of(project)))
    case filter: FilterExec => chainBelow(filter.child, filter :: above)
    case project: ProjectExec => chainBelow(project.child, project :: above)
    case expand: ExpandExec => Right((above, WindowedRows.of(expand)))
    case other => Left(s"${other.nodeName} stands between windows and aggregate")
  }

  private def matched(
      hash: HashAggregateExec,
      chain: (List[SparkPlan], WindowedRows)): Either[String, WindowedAggregate] = {
    val (steps, rows) = chain
    for {
      column <- windowColumn(rows)
      projections = rows.copies.map(_(column))
      start <- projections.head match {
        case struct: CreateNamedStruct if struct.valExprs.size == 2 => Right(struct.valExprs.head)
        case _ => Left("its windows are no structs of start and end")
      }
      windows <- SlidingWindows.of(projections)
      names <- namesOf(rows.output(column), steps)
      key <- windowKey(hash, names)
      _ <- Either.cond(
        !usesAny(hash.aggregateExpressions ++ hash.groupingExpressions.patch(key, Nil, 1), names),
        (),
        "the window is used in the aggregate other than as a key")
    } yield WindowedAggregate(hash, steps, rows, column, start, windows, names, key)
  }

  /** The place of the window: the only column that is one, or in which the copies of a row differ. */
  private def windowColumn(rows: WindowedRows): Either[String, Int] = {
    val places = rows.output.indices.filter { index =>
      val values = rows.copies.map(_(index))
      if (values.size == 1) isWindow(rows.output(index)) && values.head.isInstanceOf[CreateNamedStruct]
      else !values.forall(value => value.deterministic && value.semanticEquals(values.head))
    }
    places match {
      case Seq(index) if isWindow(rows.output(index)) => Right(index)
      case _ => Left("rows are expanded by more than their windows")
    }
  }

  /** All names of the window between the node that makes it and the aggregate. */
  private def namesOf(made: Attribute, steps: List[SparkPlan]): Either[String, Set[ExprId]] =
    steps.foldLeft[Either[String, Set[ExprId]]](Right(Set(made.exprId))) { (names, step) =>
      names.flatMap { known =>
        val (renamed, others) = step.expressions.partition(isNamed(_, known))
        val using = step match {
          case filter: FilterExec => conditionsOf(filter, known)._2.filterNot(isOf(known))
          case _ => others
        }
        if (usesAny(using, known)) Left("the window is used before the aggregate")
        else if (!step.expressions.forall(_.deterministic))
          Left("an expression above the windows is not deterministic")
        else Right(known ++ renamed.collect { case name: NamedExpression => name.exprId })
      }
    }

  /** Conditions of a filter that do not use the window, and those that do. */
  private[windows] def conditionsOf(
      filter: FilterExec,
      names: Set[ExprId]): (Seq[Expression], Seq[Expression]) =
    splitConjunctivePredicates(filter.condition).partition(part => !usesAny(Seq(part), names))

  /** Whether an expression uses the window and no other column. */
  private def isOf(names: Set[ExprId])(expression: Expression): Boolean =
    expression.references.forall(attribute => names.contains(attribute.exprId))

  private def windowKey(hash: HashAggregateExec, names: Set[ExprId]): Either[String, Int] =
    hash.groupingExpressions.zipWithIndex.collect {
      case (key, index) if isNamed(key, names) => index
    } match {
      case Seq(index) => Right(index)
      case _ => Left("the window itself is not a key of the aggregate")
    }

  /** Whether an expression is the window and nothing else, perhaps under another name. */
  private[windows] def isNamed(expression: Expression, names: Set[ExprId]): Boolean =
    expression match {
      case attribute: Attribute => names.contains(attribute.exprId)
      case Alias(attribute: Attribute, _) => names.contains(attribute.exprId)
      case _ => false
    }

  private def usesAny(expressions: Seq[Expression], names: Set[ExprId]): Boolean =
    expressions.exists(_.references.exists(attribute => names.contains(attribute.exprId)))
}
