// Scala because: it asks sources of Spark, objects of the driver's JVM, on the stream thread.
package org.apache.spark.sql.penstock.admission

import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.execution.streaming.Source

import penstock.Clock
import penstock.admission.Amount
import penstock.wire.{Offer, Share}

/** The data that wait in a source outside the log, and the taking of some of them. */
private[admission] trait OutsideData {

  /**
   * What a batch from `start`, which is null where nothing was ever read of a source, may have of
   * what waits; `limit` is the user's own.
   */
  def look(start: Offset, limit: ReadLimit): Offer

  /** Takes this share of what was offered. */
  def take(start: Offset, share: Share, limit: ReadLimit): Taken

  /** How far the source could be read when it was looked at last; null if that is not known. */
  def latest: Offset
}

/** A batch's part of a source: its end, null if it has none, what it reads, and what is left. */
private[admission] final case class Taken(end: Offset, read: Amount, left: Amount)

/**
 * A source that can be asked without taking anything, which are all but Spark's files. It tells no
 * time of arrival: what is new has come since it was last found to have nothing new.
 *
 * @param rowsBetween how many rows lie between two offsets, if that can be told; below 0 if the
 *   second is the earlier one
 */
private[admission] final class AskedData(
    source: SparkDataStream,
    rowsBetween: (Offset, Offset) => Option[Long],
    cutsBy: String,
    clock: Clock)
    extends OutsideData {

  private var lookedAt: Offset = null
  private var lookedNs = 0L

  /** All that was there at this moment is read: what waits has come after it. */
  private var readUpToNs = Option.empty[Long]

  /** Ends that were seen since then, with the moment of each; thinned out where they are many. */
  private var seen = Vector.empty[(Long, Offset)]

  override def latest: Offset = lookedAt

  override def look(start: Offset, limit: ReadLimit): Offer = {
    lookedAt = ask(start, ReadLimit.allAvailable())
    lookedNs = clock.nanos
    if (isNothing(start)) {
      readUpTo(lookedNs)
      Offer(cutsBy = cutsBy)
    } else {
      noteLook(start)
      val waitingNs = lookedNs - readUpToNs.getOrElse(lookedNs)
      Offer(
        rows = rowsUpTo(start, lookedAt).map(rows => RowLimit.of(limit).fold(rows)(math.min(rows, _))),
        ageMs = Some(waitingNs / Clock.NsInMs.toDouble),
        cutsBy = cutsBy)
    }
  }

  private def readUpTo(ns: Long): Unit = {
    readUpToNs = Some(ns)
    seen = seen.filter(_._1 - ns > 0)
  }

  private def noteLook(start: Offset): Unit = {
    if (readUpToNs.isEmpty) readUpToNs = Some(lookedNs)
    seen.takeWhile { case (_, end) => rowsBetween(start, end).exists(_ <= 0) }.lastOption.foreach {
      case (ns, _) => readUpTo(ns)
    }
    if (!seen.lastOption.exists(_._2 == lookedAt)) seen = seen :+ (lookedNs -> lookedAt)
    if (seen.size > AskedData.SeenMax) {
      seen = seen.zipWithIndex.collect { case (mark, index) if index % 2 == 0 => mark }
    }
  }

  override def take(start: Offset, share: Share, limit: ReadLimit): Taken = {
    val end = share match {
      case _ if isNothing(start) => null
      case Share.UpTo(number) => took(ask(start, RowLimit.smaller(limit, number)))
      case Share.All if RowLimit.isAll(RowLimit.mostOf(limit)) || !takesLimits => took(lookedAt)
      case Share.All => took(ask(start, RowLimit.mostOf(limit)))
      case _ => null
    }
    if (end == null) Taken(null, Amount.Nothing, Amount(rowsUpTo(start, lookedAt)))
    else Taken(end, Amount(rowsUpTo(start, end)), Amount(rowsUpTo(end, lookedAt)))
  }

  private def rowsUpTo(start: Offset, end: Offset): Option[Long] =
    if (end == null) None else rowsBetween(start, end).filter(_ >= 0)

  /** A batch that ends where the source ended when it was looked at leaves nothing of that time. */
  private def took(end: Offset): Offset = {
    if (end == lookedAt) readUpTo(lookedNs)
    end
  }

  private def takesLimits: Boolean = source.isInstanceOf[SupportsAdmissionControl]

  private def isNothing(start: Offset): Boolean =
    lookedAt == null || (start != null && lookedAt.json() == start.json())

  private def ask(start: Offset, limit: ReadLimit): Offset = source match {
    case limited: SupportsAdmissionControl => limited.latestOffset(start, limit)
    case stream: MicroBatchStream => stream.latestOffset()
    case older: Source => older.getOffset.orNull
    case other => throw new IllegalStateException(s"unknown kind of source: $other")
  }
}

private object AskedData {
  private val SeenMax = 256
}
