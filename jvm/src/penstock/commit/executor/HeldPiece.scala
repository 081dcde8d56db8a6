// Scala because: a piece is the files that one state store of one task has written for one
// batch.
package penstock.commit.executor

import java.io.File

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import penstock.Bug
import penstock.checkpoint.location.StateFile
import penstock.commit.{PieceDurable, PieceWritten}
import penstock.commit.channel.{Durable, Writer}
import penstock.wire.FileEntry

/** One file of a piece. A snapshot has no local copy: it goes straight to the location. */
final class HeldFile private[commit] (
    val path: Path,
    val stateFile: StateFile,
    val local: Option[File]) {
  @volatile var isClosed = false
  @volatile var bytes = 0L

  /** Its bytes are in the sum of what this JVM holds. */
  var isCounted = false
}

/** A snapshot that a piece waits for, of the attempt that announced it last. */
final class Expected private[commit] (val piece: HeldPiece, val file: HeldFile)

/**
 * A snapshot that is written, and the piece that waits for it.
 *
 * @param isExpected the batch was told to wait for it before it was begun
 * @param isKept the piece goes on waiting for it if this try fails
 */
private[commit] final class Joined(
    val expected: Expected,
    val isExpected: Boolean,
    val isKept: Boolean)

/** What all attempts at one piece have in common: they may give their files one name. */
private[commit] final class Attempts(val run: String, val stateFile: StateFile) {

  /** How often the piece was written; an attempt that is given up before its commit is none. */
  var generation = 0L

  /** When the attempt began whose write was made current last; an older one never is again. */
  var newestBegunAt = 0L

  /** A changelog of it was written, so that a snapshot of it is not what the batch waits for. */
  var hasChangelog = false
}

/** One write of a piece: the files one store writes for one batch, on this JVM, in one attempt. */
final class HeldPiece private[commit] (
    private[commit] val attempts: Attempts,
    private[commit] val begunAt: Long,
    val location: CheckpointFileManager,
    val conf: Configuration) {
  import HeldPiece._

  val files = mutable.LinkedHashMap.empty[String, HeldFile]
  val stepsNs = mutable.Map.empty[String, Long]

  /** Which write of the piece this is, counted from 1; 0 until it is current. */
  @volatile var generation = 0L
  @volatile private var stateNow: HeldPieceState = HeldPieceState.Begun
  private val story = mutable.Queue.empty[String]

  def run: String = attempts.run

  def stateFile: StateFile = attempts.stateFile

  def state: HeldPieceState = stateNow

  /** The one way to another state; an event that cannot happen is a bug that tells the story. */
  private[commit] def on(event: HeldPieceEvent): Unit = {
    val before = stateNow
    val next = HeldPieceState.next(before, event).getOrElse(
      throw new Bug(
        "held_piece",
        s"$event cannot happen to the state ${stateFile.relative} of run $run, which is $before " +
          s"as write $generation; its story: ${story.mkString("; ")}"))
    if (story.size == StoryMax) story.dequeue()
    story.enqueue(s"$before, $event -> $next")
    stateNow = next
  }

  /**
   * Puts a file into the location, unless it is superseded. Attempts may give their files one name
   * and go in one after the other, so that an older one's never comes to lie over a newer one's.
   */
  def enter(isSuperseded: => Boolean)(put: => Unit): Boolean = attempts.synchronized {
    val isIn = !isSuperseded
    if (isIn) put
    isIn
  }

  def isWhole: Boolean = files.nonEmpty && files.values.forall(_.isClosed)

  /** The file is part of the piece; another attempt may have begun the same file anew. */
  def has(file: HeldFile): Boolean = files.get(file.stateFile.relative).contains(file)

  /** What the driver is told as ack 1. */
  private[commit] def written: PieceWritten =
    PieceWritten(stateFile.batch, stateFile.piece, Writer.name, generation)

  /** What the driver is told as ack 2; `entries` are those of its files in the log. */
  private[commit] def durable(entries: Seq[FileEntry]): Durable = Durable(
    PieceDurable(stateFile.batch, stateFile.piece, Writer.name, generation),
    entries,
    stepsNs.toMap)
}

private object HeldPiece {

  /** The last events that a story keeps; a piece without retries has four or five. */
  val StoryMax = 32
}
