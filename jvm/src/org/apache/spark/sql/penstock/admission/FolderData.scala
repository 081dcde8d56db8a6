// Scala because: it lists files through Spark's file source, an object of the driver's JVM.
package org.apache.spark.sql.penstock.admission

import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.execution.streaming.runtime.{FileStreamSource, FileStreamSourceOffset}
import org.apache.spark.sql.execution.streaming.{Offset => OffsetV1}
import org.apache.spark.sql.penstock.SparkMembers

import penstock.Clock
import penstock.admission.Amount
import penstock.wire.{Offer, Share}

/**
 * The files that wait in a folder. Asking Spark's file source for its latest offset takes files: it
 * records them in its own log. So the folder is listed first, and the source asked once, for the
 * files of a batch.
 *
 * Listing may cost much: it is done at most so often that a small part of the time goes into it.
 */
private[admission] final class FolderData(source: FileStreamSource, clock: Clock) extends OutsideData {
  import FolderData._

  private val waiting = new WaitingFiles(clock)
  private var listAgainAtNs = Option.empty[Long]

  override def latest: Offset =
    if (source.currentLogOffset < 0) null else FileStreamSourceOffset(source.currentLogOffset)

  override def look(start: Offset, limit: ReadLimit): Offer = {
    if (listAgainAtNs.forall(_ - clock.nanos <= 0)) list()
    if (isTakenAlready(start)) Offer(ageMs = Some(0.0), cutsBy = Offer.ByNothing)
    else if (waiting.isEmpty) Offer(cutsBy = Offer.ByBytes)
    else {
      val files = waiting.within(limit)
      Offer(
        bytes = Some(files.map(_.bytes).sum),
        files = Some(files.size.toLong),
        ageMs = waiting.oldestAgeMs,
        cutsBy = Offer.ByBytes)
    }
  }

  override def take(start: Offset, share: Share, limit: ReadLimit): Taken = share match {
    case Share.Nothing => nothing
    // Files that the source recorded for a batch that never began are that batch.
    case _ if isTakenAlready(start) => Taken(latest, Amount.Unknown, left)
    case _ if waiting.isEmpty => nothing
    case Share.UpTo(bytes) =>
      val files = WaitingFiles.firstOf(waiting.within(limit), bytes)
      asked(start, ReadLimit.maxFiles(files.size))
    case _ => asked(start, limit)
  }

  private def asked(start: Offset, limit: ReadLimit): Taken = {
    val seen = source.seenFiles.size
    val end = source.latestOffset(start, limit)
    val bytes = waiting.took(source.seenFiles.size - seen, isNew)
    listAgainAtNs = listAgainAtNs.filter(_ => !waiting.isEmpty)
    Taken(end, Amount(bytes = bytes), left)
  }

  private def nothing: Taken = Taken(null, Amount.Nothing, left)

  private def left: Amount = Amount(bytes = Some(waiting.bytes))

  private def isTakenAlready(start: Offset): Boolean = source.currentLogOffset > (start match {
    case null => -1L
    case known: OffsetV1 => FileStreamSourceOffset(known).logOffset
    case _ => Long.MaxValue
  })

  private def list(): Unit = {
    val beganNs = clock.nanos
    val decided = Option(SparkMembers.FilesAvailableNow.of(source))
    val files = decided.getOrElse(SparkMembers.ListedFiles.of(source)).map(WaitingFile.of)
    waiting.listed(files.filter(isNew), beganNs)
    val endedNs = clock.nanos
    listAgainAtNs = Some(endedNs + math.max(PauseNsMin, (endedNs - beganNs) * PausePerListing))
  }

  private def isNew(file: WaitingFile): Boolean = source.seenFiles.isNewFile(file.path, file.modifiedMs)
}

private[admission] object FolderData {

  /** Not more than a twentieth of the time goes into listing. */
  val PausePerListing = 20L
  val PauseNsMin: Long = 50 * Clock.NsInMs

  /** Whether this version of Spark tells which files wait. */
  def isPossible: Boolean = SparkMembers.ListedFiles.isThere && SparkMembers.FilesAvailableNow.isThere
}
