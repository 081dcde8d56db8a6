// Scala because: it reads the stateful operators of Spark's physical plan.
package org.apache.spark.sql.penstock.lookahead

import org.apache.spark.sql.catalyst.expressions.{Coalesce, Expression, Literal, Not}
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.FlatMapGroupsInPandasWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.{JoinSide, LeftSide, RightSide}
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreId}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.ReferencedLong
import org.apache.spark.sql.streaming.GroupStateTimeout
import org.apache.spark.sql.types.DataType

/**
 * A store that is read by the key of a row.
 *
 * @param values where the rows of a key are, if the store has their number
 */
private[lookahead] final case class StoreRead(
    store: String,
    family: String,
    values: Option[StoreRead] = None)

/**
 * What a stateful operator reads for each row of one of its inputs.
 *
 * @param key over the output of `input`
 * @param conditions what must hold for a row of the batch to be looked up
 * @param conditionsNext what must hold for one of the batch behind it: rows that wait in the log
 * @param stores each of them is read by that key
 */
private[lookahead] final case class StateRead(
    input: SparkPlan,
    key: Seq[Expression],
    conditions: Seq[Expression],
    conditionsNext: Seq[Expression],
    stores: Seq[StoreRead]) {

  /** The same for rows of the batch behind. */
  def next: StateRead = copy(conditions = conditionsNext)

  def keyTypes: Seq[DataType] = key.map(_.dataType)
}

/** Which stateful operators are read key by key, and by which keys. */
private[lookahead] object StateRead {

  /** One for each input of the operator, or why it is left alone. */
  def of(operator: StatefulOperator): Either[String, Seq[StateRead]] = operator match {
    case restore: StateStoreRestoreExec if restore.keyExpressions.isEmpty =>
      Left("an aggregate over all rows has one key")
    case restore: StateStoreRestoreExec =>
      // A late row is looked up too: Spark drops it when the new value is to be saved.
      Right(Seq(StateRead(restore.child, restore.keyExpressions, Nil, Nil, Default)))
    case dedup: BaseStreamingDeduplicateExec =>
      val key = dedup.keyExpressions.map(NormalizeFloatingNumbers.normalize)
      Right(Seq(StateRead(dedup.child, key, notLate(dedup), notLateNext(dedup), Default)))
    case groups: FlatMapGroupsInPandasWithStateExec =>
      val dropsLate = groups.timeoutConf == GroupStateTimeout.EventTimeTimeout
      val (late, lateNext) = if (dropsLate) (notLate(groups), notLateNext(groups)) else (Nil, Nil)
      Right(Seq(StateRead(groups.child, groups.groupingAttributes, late, lateNext, Default)))
    case join: StreamingSymmetricHashJoinExec if join.stateFormatVersion > 3 =>
      Left(s"a join of state format ${join.stateFormatVersion} is read by scans")
    case join: StreamingSymmetricHashJoinExec =>
      Right(Seq(ofSide(join, LeftSide), ofSide(join, RightSide)))
    case _: SessionWindowStateStoreRestoreExec => Left("session windows are read by scans")
    case other => Left(s"${other.nodeName} is not known to be read key by key")
  }

  private val Default = Seq(StoreRead(StateStoreId.DEFAULT_STORE_NAME, StateStore.DEFAULT_COL_FAMILY_NAME))

  private def notLate(operator: WatermarkSupport): Seq[Expression] =
    isNot(operator.watermarkExpressionForLateEvents)

  /**
   * The watermark by which a batch evicts is the one by which the batch behind it drops late rows.
   * A batch after that one may drop more: of those rows some are hinted and not looked up.
   */
  private def notLateNext(operator: WatermarkSupport): Seq[Expression] =
    isNot(operator.watermarkExpressionForEviction)

  /** Spark keeps a row whose event time is null. */
  private def isNot(late: Option[Expression]): Seq[Expression] = late.map { expression =>
    Coalesce(Seq(Not(ReferencedLong.in(expression)), Literal.TrueLiteral))
  }.toSeq

  private def ofSide(join: StreamingSymmetricHashJoinExec, side: JoinSide): StateRead = {
    val (input, key, filter) = side match {
      case LeftSide => (join.left, join.leftKeys, join.condition.leftSideOnly)
      case RightSide => (join.right, join.rightKeys, join.condition.rightSideOnly)
    }
    val severalTimes = !SQLConf.get.getConf(SQLConf.STATEFUL_OPERATOR_ALLOW_MULTIPLE)
    def inTime(watermark: Option[Long]): Seq[Expression] = isNot(WatermarkSupport.watermarkExpression(
      WatermarkSupport.findEventTimeColumn(input.output, severalTimes), watermark)) ++ filter
    StateRead(
      input, key, inTime(join.eventTimeWatermarkForLateEvents),
      inTime(join.eventTimeWatermarkForEviction), storesOf(join, side))
  }

  /**
   * Of the other side a row reads the number of rows and then all of them; of its own side the
   * number, to be stored behind them. A left row of a semi join is done with the first match, and
   * is stored only if it has none: of those reads only the first is sure.
   */
  private def storesOf(join: StreamingSymmetricHashJoinExec, side: JoinSide): Seq[StoreRead] = {
    val other = if (side == LeftSide) RightSide else LeftSide
    def store(of: JoinSide, kind: String): StoreRead = {
      val name = s"$of-$kind"
      if (join.stateFormatVersion < 3) StoreRead(name, StateStore.DEFAULT_COL_FAMILY_NAME)
      else StoreRead(StateStoreId.DEFAULT_STORE_NAME, name)
    }
    val ofOther = store(other, NumberOfValues)
    if (join.joinType == LeftSemi && side == LeftSide) Seq(ofOther)
    else Seq(ofOther.copy(values = Some(store(other, Values))), store(side, NumberOfValues))
  }

  /** Spark's names of the two kinds of stores of a join. */
  private val NumberOfValues = "keyToNumValues"
  private val Values = "keyWithIndexToValue"
}
