// Scala because: it reads nodes and expressions of Spark's physical plan.
package org.apache.spark.sql.penstock.eviction

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.{Attribute, BoundReference, Expression, GetStructField, LessThanOrEqual, Literal}
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.catalyst.streaming.InternalOutputModes.{Append, Update}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{StateStoreSaveExec, StateStoreWriter, StreamingDeduplicateExec, StreamingDeduplicateWithinWatermarkExec, StreamingGlobalLimitExec, WatermarkSupport}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.{StreamingSymmetricHashJoinExec, SymmetricHashJoinStateManager}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreId}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, LongType, StructType, TimestampNTZType, TimestampType}

import penstock.eviction.{DeclaredScan, StoreFamily, TimeColumn}

/** Where an operator has the stores of its partitions. */
private[eviction] final case class OperatorFolder(location: String, operator: Long) {
  def of(partition: Int, store: String): String =
    StateStoreId(location, operator, partition, store).storeCheckpointLocation().toString
}

/** One family of the stores that an operator has in every partition. */
private[eviction] final case class OperatorFamily(store: String, family: String) {
  def in(folder: OperatorFolder, partition: Int): StoreFamily =
    StoreFamily(folder.of(partition, store), family)
}

/** A scan for eviction that an operator makes in each partition: see DeclaredScan. */
private[eviction] final case class OperatorScan(
    scanned: OperatorFamily,
    timed: OperatorFamily,
    column: TimeColumn,
    untilUs: Long) {

  def in(folder: OperatorFolder, partition: Int): DeclaredScan = DeclaredScan(
    scanned.in(folder, partition), timed.in(folder, partition), column, untilUs)
}

/**
 * The scans of Spark's operators, read off the same expressions that the operators evict by. An
 * operator or an expression of another shape is left to Spark.
 */
private[eviction] object OperatorScans {
  private val OnlyFamily =
    OperatorFamily(StateStoreId.DEFAULT_STORE_NAME, StateStore.DEFAULT_COL_FAMILY_NAME)

  /** None: this operator is left to Spark. Empty: it evicts nothing. */
  def of(operator: StateStoreWriter): Option[Seq[OperatorScan]] = operator match {
    case save: StateStoreSaveExec => ofAggregation(save)
    case distinct: StreamingDeduplicateExec => ofDeduplication(distinct)
    case distinct: StreamingDeduplicateWithinWatermarkExec =>
      // Of what this operator keeps, the value is the time at which it expires.
      Some(distinct.eventTimeWatermarkForEviction.toSeq.map { watermarkMs =>
        val column = TimeColumn(inValue = true, fields = 1, ordinal = 0, windowFields = 0)
        OperatorScan(OnlyFamily, OnlyFamily, column, Math.multiplyExact(watermarkMs, 1000L))
      })
    case join: StreamingSymmetricHashJoinExec if join.stateFormatVersion <= 3 => ofJoin(join)
    case _: StreamingGlobalLimitExec => Some(Nil)
    case _ => None
  }

  private def ofAggregation(save: StateStoreSaveExec): Option[Seq[OperatorScan]] =
    if (!save.outputMode.exists(mode => mode == Append || mode == Update)) Some(Nil)
    else
      Try(save.watermarkExpressionForEviction).toOption.flatMap {
        case Some(expired) if save.keyExpressions.exists(_.metadata.contains(EventTimeWatermark.delayKey)) =>
          byKey(expired, save.keyExpressions)
        case _ => Some(Nil)
      }

  /** Where it is spread over the rows of a batch, it goes by another watermark. */
  private def ofDeduplication(distinct: StreamingDeduplicateExec): Option[Seq[OperatorScan]] =
    if (distinct.conf.getConf(SQLConf.STREAMING_STATE_INCREMENTAL_CLEANUP_FACTOR) > 0) None
    else
      Try {
        val time = WatermarkSupport.findEventTimeColumn(
          distinct.keyExpressions,
          allowMultipleEventTimeColumns = !distinct.allowMultipleStatefulOperators)
        WatermarkSupport.watermarkExpression(time, distinct.eventTimeWatermarkForEviction)
      }.toOption.flatMap(_.fold(Option(Seq.empty[OperatorScan]))(byKey(_, distinct.keyExpressions)))

  private def byKey(expired: Expression, keys: Seq[Attribute]): Option[Seq[OperatorScan]] =
    comparedIn(expired, keys).map { case (at, untilUs) =>
      val column = TimeColumn(inValue = false, keys.size, at.ordinal, windowFieldsOf(at.dataType))
      Seq(OperatorScan(OnlyFamily, OnlyFamily, column, untilUs))
    }

  private def ofJoin(join: StreamingSymmetricHashJoinExec): Option[Seq[OperatorScan]] = {
    val predicates = join.stateWatermarkPredicates
    for {
      left <- ofSide(join, LeftSide, join.left, join.leftKeys.size, predicates.left)
      right <- ofSide(join, RightSide, join.right, join.rightKeys.size, predicates.right)
    } yield left ++ right
  }

  /** A join goes through the number of rows of each key; by a time in the rows, it looks up each. */
  private def ofSide(
      join: StreamingSymmetricHashJoinExec,
      side: JoinSide,
      input: SparkPlan,
      keys: Int,
      predicate: Option[JoinStateWatermarkPredicate]): Option[Seq[OperatorScan]] = {
    val families = SymmetricHashJoinStateManager.allStateStoreNames(side).map { name =>
      if (join.stateFormatVersion == 3) OperatorFamily(StateStoreId.DEFAULT_STORE_NAME, name)
      else OperatorFamily(name, StateStore.DEFAULT_COL_FAMILY_NAME)
    }
    (families, predicate) match {
      case (_, None) => Some(Nil)
      case (Seq(counts, _), Some(JoinStateKeyWatermarkPredicate(expired, _, _))) =>
        comparedIn(expired, Nil).map { case (at, untilUs) =>
          val column = TimeColumn(inValue = false, keys, at.ordinal, windowFieldsOf(at.dataType))
          Seq(OperatorScan(counts, counts, column, untilUs))
        }
      case (Seq(counts, values), Some(JoinStateValueWatermarkPredicate(expired, _, _))) =>
        comparedIn(expired, input.output).map { case (at, untilUs) =>
          // From format 2 on, a row ends in whether it has been joined.
          val fields = input.output.size + (if (join.stateFormatVersion == 1) 0 else 1)
          val column = TimeColumn(inValue = true, fields, at.ordinal, windowFieldsOf(at.dataType))
          Seq(OperatorScan(counts, values, column, untilUs))
        }
      case _ => None
    }
  }

  private final case class Place(ordinal: Int, dataType: DataType)

  /** Where the compared time stands among the attributes, and the watermark. */
  private def comparedIn(expired: Expression, attributes: Seq[Attribute]): Option[(Place, Long)] =
    expired match {
      case LessThanOrEqual(time, Literal(untilUs: Long, LongType)) =>
        val place = time match {
          case GetStructField(window, 1, _) =>
            placeOf(window, attributes).filter(_.dataType.isInstanceOf[StructType])
          case _ => placeOf(time, attributes).filter(at => isTime(at.dataType))
        }
        place.map(at => (at, untilUs))
      case _ => None
    }

  private def placeOf(time: Expression, attributes: Seq[Attribute]): Option[Place] = time match {
    case bound: BoundReference => Some(Place(bound.ordinal, bound.dataType))
    case attribute: Attribute =>
      val ordinal = attributes.indexWhere(_.exprId == attribute.exprId)
      if (ordinal < 0) None else Some(Place(ordinal, attribute.dataType))
    case _ => None
  }

  private def isTime(dataType: DataType): Boolean =
    dataType == TimestampType || dataType == TimestampNTZType || dataType == LongType

  private def windowFieldsOf(dataType: DataType): Int = dataType match {
    case window: StructType => window.length
    case _ => 0
  }
}
