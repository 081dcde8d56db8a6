// Scala because: it lists files through Spark's file source, an object of the driver's JVM.
package org.apache.spark.sql.penstock.admission

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.execution.streaming.runtime.{FileStreamSource, FileStreamSourceOffset}
import org.apache.spark.sql.execution.streaming.{Offset => OffsetV1}
import org.apache.spark.sql.penstock.SparkMembers

import penstock.Clock
import penstock.wire.{Offer, Share}

/**
 * The files that wait in a folder. Asking Spark's file source for its latest offset takes files: it
 * records them in its own log. So the folder is listed first, and the source asked once, for the
 * files of a batch. A file arrives at the time of its last modification.
 *
 * Listing may cost much: it is done at most so often that a small part of the time goes into it.
 */
private[admission] final class FolderData(source: FileStreamSource, clock: Clock) extends OutsideData {
  import FolderData._

  private var waiting = Seq.empty[WaitingFile]
  private var listAgainAtNs = Option.empty[Long]

  override def latest: Offset =
    if (source.currentLogOffset < 0) null else FileStreamSourceOffset(source.currentLogOffset)

  override def look(start: Offset): Offer = {
    if (listAgainAtNs.forall(_ - clock.nanos <= 0)) list()
    val nowMs = clock.wallMs
    if (isTakenAlready(start)) Offer(ageMs = Some(0.0), cutsBy = Offer.ByNothing)
    else if (waiting.isEmpty) Offer(cutsBy = Offer.ByBytes)
    else
      Offer(
        bytes = Some(waiting.map(_.bytes).sum),
        files = Some(waiting.size.toLong),
        ageMs = Some(math.max(0L, nowMs - waiting.map(_.modifiedMs).min).toDouble),
        cutsBy = Offer.ByBytes)
  }

  override def take(start: Offset, share: Share, limit: ReadLimit): Offset = share match {
    case Share.Nothing => null
    // Files that the source recorded for a batch that never began are that batch.
    case _ if isTakenAlready(start) => latest
    case _ if waiting.isEmpty => null
    case Share.UpTo(bytes) => asked(start, filesWithin(bytes, limit))
    case _ => asked(start, limit)
  }

  private def asked(start: Offset, limit: ReadLimit): Offset = {
    val end = source.latestOffset(start, limit)
    waiting = waiting.filter(isNew)
    listAgainAtNs = listAgainAtNs.filter(_ => waiting.nonEmpty)
    end
  }

  private def isTakenAlready(start: Offset): Boolean = source.currentLogOffset > (start match {
    case null => -1L
    case known: OffsetV1 => FileStreamSourceOffset(known).logOffset
    case _ => Long.MaxValue
  })

  private def list(): Unit = {
    val beganNs = clock.nanos
    val decided = Option(SparkMembers.FilesAvailableNow.of(source))
    waiting = decided.getOrElse(SparkMembers.ListedFiles.of(source)).map(WaitingFile.of).filter(isNew)
    val endedNs = clock.nanos
    listAgainAtNs = Some(endedNs + math.max(PauseNsMin, (endedNs - beganNs) * PausePerListing))
  }

  private def isNew(file: WaitingFile): Boolean = source.seenFiles.isNewFile(file.path, file.modifiedMs)

  /** So many files that they have no more than these bytes, but one at least; or the user's limit. */
  private def filesWithin(bytes: Long, limit: ReadLimit): ReadLimit = {
    val bytesMax = limit match {
      case most: ReadMaxBytes => math.min(most.maxBytes(), bytes)
      case _ => bytes
    }
    val files = waiting.map(_.bytes).scanLeft(0L)(_ + _).tail.count(_ <= bytesMax)
    val filesMax = limit match {
      case most: ReadMaxFiles => math.min(most.maxFiles(), files)
      case _ => files
    }
    ReadLimit.maxFiles(math.max(1, filesMax))
  }
}

private[admission] object FolderData {

  /** Not more than a twentieth of the time goes into listing. */
  val PausePerListing = 20L
  val PauseNsMin: Long = 50 * Clock.NsInMs

  /** Whether this version of Spark tells which files wait. */
  def isPossible: Boolean = SparkMembers.ListedFiles.isThere && SparkMembers.FilesAvailableNow.isThere

  final case class WaitingFile(path: SparkPath, bytes: Long, modifiedMs: Long)

  object WaitingFile {

    /** From Spark's own record of a file, whose class is private. */
    def of(record: Product): WaitingFile = WaitingFile(
      record.productElement(0).asInstanceOf[SparkPath],
      record.productElement(1).asInstanceOf[Long],
      record.productElement(2).asInstanceOf[Long])
  }
}
