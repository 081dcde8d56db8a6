package penstock.commit

import java.io.File

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** One file of a piece. A snapshot has no local copy: it goes straight to the location. */
final class Member private[commit] (val file: Path, val what: StateFile, val local: Option[File]) {
  @volatile var isClosed = false
  @volatile var isDurable = false
  @volatile var bytes = 0L
}

/** A snapshot that a piece waits for, of the attempt that announced it last. */
final class Expected private[commit] (val piece: HeldPiece, val member: Member)

/** The files one store writes for one batch, on this JVM, in one attempt. */
final class HeldPiece private[commit] (
    val run: String,
    val what: StateFile,
    val generation: Long,
    val files: CheckpointFileManager,
    val conf: Configuration,
    entering: AnyRef) {
  val members = mutable.LinkedHashMap.empty[String, Member]
  val steps = mutable.Map.empty[String, Long]
  var isDurable = false

  /**
   * Puts a file into the location, unless it is superseded. Attempts may give their files one name
   * and go in one after the other, so that an older one's never comes to lie over a newer one's.
   */
  def enter(isSuperseded: => Boolean)(put: => Unit): Boolean = entering.synchronized {
    val isIn = !isSuperseded
    if (isIn) put
    isIn
  }

  /** The piece of the same name that a later attempt begins. */
  def again(generation: Long, files: CheckpointFileManager, conf: Configuration): HeldPiece =
    new HeldPiece(run, what, generation, files, conf, entering)

  def isComplete: Boolean = members.nonEmpty && members.values.forall(_.isClosed)

  /** Its commit is under way: an attempt that is given up may never get so far. */
  def isBegun: Boolean = members.values.exists(member => member.isClosed || member.local.isEmpty)

  /** The member is part of the piece; another attempt may have begun the same file anew. */
  def has(member: Member): Boolean = members.get(member.what.relative).contains(member)
}
