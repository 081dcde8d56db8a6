// Scala because: window expressions of Spark's plans can only be evaluated where they are objects.
package org.apache.spark.sql.penstock.windows

import java.util.Random

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  Expression,
  PreciseTimestampConversion
}
import org.apache.spark.sql.types.LongType

/**
 * The windows of a query: every row is in `count` of them, the newest of which starts at the last
 * multiple of the slide, counted from `offsetUs`, and each other one slide before the one before.
 */
private[penstock] final case class SlidingWindows(count: Int, slideUs: Long, offsetUs: Long) {
  def rangeUs: Long = count * slideUs

  /** Whether a row is in more than one. */
  def overlap: Boolean = count > 1

  override def toString: String =
    s"$count windows per row, slide ${SlidingWindows.inSeconds(slideUs)}"
}

/**
 * Finds range and slide of windows by evaluating their expressions at sample times. Spark's optimizer
 * folds constants into them, so that their form tells little; what they yield tells all.
 */
private[penstock] object SlidingWindows {
  private val UsInSecond = 1000000L
  private val RandomTimes = 40

  /** Sample times lie within some 140 years of 1970, so that no arithmetic overflows. */
  private val SampleUsMax = 1L << 52

  /**
   * The windows of one expression each, newest first: a struct of start and end made from one time.
   * Left is the reason why rows of one slide are not known to share all of them.
   */
  def of(expressions: Seq[Expression]): Either[String, SlidingWindows] =
    try {
      for {
        evaluated <- overOneTime(expressions)
        windows <- measured(evaluated)
      } yield windows
    } catch {
      case NonFatal(e) => Left(s"its windows cannot be evaluated beforehand: ${e.getMessage}")
    }

  /** A time span in the unit in which people write it. */
  def inSeconds(us: Long): String =
    if (us % UsInSecond == 0) s"${us / UsInSecond} s"
    else s"${BigDecimal(us) / UsInSecond} s"

  /** The expressions with the time from which they are made as the only column of a row. */
  private def overOneTime(expressions: Seq[Expression]): Either[String, Seq[Expression]] = {
    val times = expressions.flatMap(timesIn).map(_.canonicalized).distinct
    val bound = expressions.map(_.transformDown {
      case PreciseTimestampConversion(_, from, LongType) =>
        PreciseTimestampConversion(BoundReference(0, from, nullable = true), from, LongType)
    })
    Either.cond(
      times.size == 1 && times.forall(_.deterministic) && bound.forall(_.references.isEmpty),
      bound,
      "its windows are made of more than one deterministic time")
  }

  /** What is converted from a timestamp to a number; a time may itself be made in that way. */
  private[windows] def timesIn(expression: Expression): Seq[Expression] = expression match {
    case PreciseTimestampConversion(time, _, LongType) => Seq(time)
    case other => other.children.flatMap(timesIn)
  }

  private def measured(expressions: Seq[Expression]): Either[String, SlidingWindows] = {
    val atZero = expressions.map(boundsAt(_, 0L))
    val rangeUs = atZero.head._2 - atZero.head._1
    val slideUs = atZero.lift(1).fold(rangeUs)(atZero.head._1 - _._1)
    val windows = SlidingWindows(expressions.size, slideUs, offsetUs = atZero.head._1)
    for {
      _ <- Either.cond(
        slideUs > 0 && rangeUs == windows.rangeUs,
        (),
        s"the range of ${inSeconds(rangeUs)} is no multiple of the slide of ${inSeconds(slideUs)}")
      isRegular = sampleTimesUs(slideUs).forall(isRegularAt(expressions, windows, _))
      _ <- Either.cond(
        isRegular && areNullAtNull(expressions),
        (),
        "its windows do not all start at multiples of their slide")
    } yield windows
  }

  private def boundsAt(window: Expression, timeUs: Long): (Long, Long) = {
    val bounds = window.eval(InternalRow(timeUs)).asInstanceOf[InternalRow]
    (bounds.getLong(0), bounds.getLong(1))
  }

  private def isRegularAt(
      expressions: Seq[Expression],
      windows: SlidingWindows,
      timeUs: Long): Boolean = {
    val (newestUs, _) = boundsAt(expressions.head, timeUs)
    val (anyUs, _) = boundsAt(expressions.head, 0L)
    val isInNewest = newestUs <= timeUs && timeUs - newestUs < windows.slideUs
    isInNewest && (newestUs - anyUs) % windows.slideUs == 0 &&
    expressions.zipWithIndex.forall { case (window, index) =>
      val startUs = newestUs - index * windows.slideUs
      boundsAt(window, timeUs) == ((startUs, startUs + windows.rangeUs))
    }
  }

  /** Rows without a time are in one pane too, if nothing drops them: all its windows are of nulls. */
  private def areNullAtNull(expressions: Seq[Expression]): Boolean = expressions.forall { window =>
    window.eval(InternalRow(null)) match {
      case bounds: InternalRow => bounds.isNullAt(0) && bounds.isNullAt(1)
      case _ => false
    }
  }

  private def sampleTimesUs(slideUs: Long): Seq[Long] = {
    val random = new Random(slideUs)
    val edges = for {
      multiple <- Seq(-1000003L, -7L, -2L, -1L, 0L, 1L, 2L, 7L, 1000003L)
      beside <- Seq(-1L, 0L, 1L)
      us = multiple * math.min(slideUs, SampleUsMax / 1000003L) + beside
    } yield us
    edges ++ Seq.fill(RandomTimes)(random.nextLong() % SampleUsMax)
  }
}
