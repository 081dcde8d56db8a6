// Scala because: Spark's file source lists the files, in the driver's JVM.
package org.apache.spark.sql.penstock.admission

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.connector.read.streaming.{ReadLimit, ReadMaxBytes, ReadMaxFiles}

import penstock.Clock

/**
 * The files of a folder that wait, in the order in which Spark's file source takes them.
 *
 * A file arrives at the time of its last modification. That time is compared with the wall clock
 * once, when the file is first listed, and within what the monotonic clock allows: it has come since
 * the last listing that was without it. From then on it ages by the monotonic clock.
 */
private[admission] final class WaitingFiles(clock: Clock) {
  import WaitingFiles._

  private var waiting = Seq.empty[Arrived]
  private var listedFromNs = Option.empty[Long]

  def isEmpty: Boolean = waiting.isEmpty

  /** The bytes of all of them. */
  def bytes: Long = bytesOf(waiting)

  /** The time since the oldest one arrived; None if none waits. */
  def oldestAgeMs: Option[Double] =
    waiting.map(_.arrivedNs).minOption.map(ns => (clock.nanos - ns) / Clock.NsInMs.toDouble)

  /** These are all that waits, by a listing that began at that moment. */
  def listed(files: Seq[WaitingFile], beganNs: Long): Unit = {
    val known = waiting.map(arrived => arrived.file -> arrived).toMap
    val (nowNs, wallMs) = (clock.nanos, clock.wallMs)
    waiting = files.map(file => known.getOrElse(file, Arrived(file, nowNs - ageNs(file, nowNs, wallMs))))
    listedFromNs = Some(beganNs)
  }

  /**
   * A batch has taken so many files, those that are not new any more, and perhaps some that came
   * after the listing; the bytes of all, of which the latter have as many as the others in the mean.
   */
  def took(files: Int, isNew: WaitingFile => Boolean): Option[Long] = {
    val (left, taken) = waiting.partition(arrived => isNew(arrived.file))
    waiting = left
    Option.when(taken.nonEmpty)(bytesOf(taken) * math.max(files, taken.size) / taken.size)
  }

  /** Those that a batch with this limit of the user takes. */
  def within(limit: ReadLimit): Seq[WaitingFile] = {
    val files = waiting.map(_.file)
    limit match {
      case most: ReadMaxFiles => files.take(most.maxFiles())
      case most: ReadMaxBytes => firstOf(files, most.maxBytes())
      case _ => files
    }
  }

  private def ageNs(file: WaitingFile, nowNs: Long, wallMs: Long): Long = {
    val modifiedAgoNs = math.max(0L, wallMs - file.modifiedMs) * Clock.NsInMs
    listedFromNs.fold(modifiedAgoNs)(ns => math.min(modifiedAgoNs, nowNs - ns))
  }
}

private[admission] object WaitingFiles {
  private final case class Arrived(file: WaitingFile, arrivedNs: Long)

  /** The first ones that have no more than these bytes together, but one at least. */
  def firstOf(files: Seq[WaitingFile], bytesMax: Long): Seq[WaitingFile] =
    files.take(math.max(1, files.map(_.bytes).scanLeft(0L)(_ + _).tail.count(_ <= bytesMax)))

  private def bytesOf(files: Seq[Arrived]): Long = files.map(_.file.bytes).sum
}

/** A file as Spark's file source has listed it. */
private[admission] final case class WaitingFile(path: SparkPath, bytes: Long, modifiedMs: Long)

private[admission] object WaitingFile {

  /** From Spark's own record of a file, whose class is private. */
  def of(record: Product): WaitingFile = WaitingFile(
    record.productElement(0).asInstanceOf[SparkPath],
    record.productElement(1).asInstanceOf[Long],
    record.productElement(2).asInstanceOf[Long])
}
