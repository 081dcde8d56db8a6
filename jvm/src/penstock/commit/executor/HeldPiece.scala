// Scala because: a piece is the files that one state store of one task has written for one
// batch.
package penstock.commit.executor

import java.io.File

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import penstock.checkpoint.location.StateFile

/** One file of a piece. A snapshot has no local copy: it goes straight to the location. */
final class Member private[commit] (val file: Path, val what: StateFile, val local: Option[File]) {
  @volatile var isClosed = false
  @volatile var bytes = 0L

  /** Its bytes are in the sum of what this JVM holds. */
  var isCounted = false
}

/** A snapshot that a piece waits for, of the attempt that announced it last. */
final class Expected private[commit] (val piece: HeldPiece, val member: Member)

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
private[commit] final class Attempts(val run: String, val what: StateFile) {

  /** How often the piece was written; an attempt that is given up before its commit is none. */
  var generation = 0L

  /** When the attempt that counts began; one that began before it never counts again. */
  var newest = 0L

  /** A changelog of it was written, so that a snapshot of it is not what the batch waits for. */
  var isLogged = false
}

/** The files one store writes for one batch, on this JVM, in one attempt. */
final class HeldPiece private[commit] (
    private[commit] val attempts: Attempts,
    private[commit] val begunAt: Long,
    val files: CheckpointFileManager,
    val conf: Configuration) {
  val members = mutable.LinkedHashMap.empty[String, Member]
  val steps = mutable.Map.empty[String, Long]

  /** Which write of the piece this is, counted from 1; 0 until it counts. */
  @volatile var generation = 0L

  /** The driver was told that it is complete, and not only that it is coming. */
  var isTold = false
  @volatile var isCopied = false
  var isDurable = false

  def run: String = attempts.run

  def what: StateFile = attempts.what

  /**
   * Puts a file into the location, unless it is superseded. Attempts may give their files one name
   * and go in one after the other, so that an older one's never comes to lie over a newer one's.
   */
  def enter(isSuperseded: => Boolean)(put: => Unit): Boolean = attempts.synchronized {
    val isIn = !isSuperseded
    if (isIn) put
    isIn
  }

  def isComplete: Boolean = members.nonEmpty && members.values.forall(_.isClosed)

  /** The member is part of the piece; another attempt may have begun the same file anew. */
  def has(member: Member): Boolean = members.get(member.what.relative).contains(member)
}
