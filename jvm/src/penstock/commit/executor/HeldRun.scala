// Scala because: it keeps the writes of state that tasks of one JVM have made, for its threads.
package penstock.commit.executor

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import penstock.Bug
import penstock.checkpoint.location.StateFile

/**
 * The writes of one run on this JVM that are not over, each under its state. Dropped as a whole
 * when the run ends. Not safe for threads: HeldState has the lock.
 */
private[commit] final class HeldRun(run: String) {
  import HeldPieceState._

  /** Of each piece the newest write that is complete here or announced to the driver. */
  private val currentWrites = mutable.LinkedHashMap.empty[String, HeldPiece]

  /** Writes that Spark has begun, and may give up; the current one stays for as long. */
  private val begunWrites = mutable.LinkedHashSet.empty[HeldPiece]
  private val attempts = mutable.Map.empty[String, Attempts]

  /** The last batch that the location has with all that belongs to it, as far as is known. */
  private var copiedBatch = Long.MinValue

  def begin(
      stateFile: StateFile,
      begunAt: Long,
      location: CheckpointFileManager,
      conf: Configuration): HeldPiece = {
    val together = attempts.getOrElseUpdate(stateFile.piece, new Attempts(run, stateFile))
    val piece = new HeldPiece(together, begunAt, location, conf)
    begunWrites += piece
    piece
  }

  def pieces: Seq[HeldPiece] = currentWrites.values.toSeq ++ begunWrites

  def current(piece: String): Option[HeldPiece] = currentWrites.get(piece)

  /** The current write, if the driver was told only that it is coming. */
  def announced(piece: String): Option[HeldPiece] = current(piece).filter(_.state == Announced)

  def begun(piece: String): Seq[HeldPiece] = begunWrites.toSeq.filter(_.stateFile.piece == piece)

  /** The newest write under way that does not have this file yet. */
  def open(stateFile: StateFile): Option[HeldPiece] =
    begun(stateFile.piece).filterNot(_.files.contains(stateFile.relative)).lastOption

  /** It is current, or will be when it is complete: no later attempt is, nor is its batch over. */
  def mayBeCurrent(piece: HeldPiece): Boolean = piece.state.isCurrent ||
    (piece.state == Begun && piece.begunAt > piece.attempts.newestBegunAt && !isCopied(piece.stateFile))

  /** Whether the batch may wait for a snapshot of the piece that nobody has announced. */
  def isFirstWrite(stateFile: StateFile): Boolean =
    !isCopied(stateFile) && !attempts.get(stateFile.piece).exists(_.hasChangelog)

  def isCopied(stateFile: StateFile): Boolean = stateFile.batch <= copiedBatch

  /** A current write to the folder, of a batch before this one, that the log or the location lacks. */
  def late(folder: String, batch: Long): Option[HeldPiece] = currentWrites.values.find { piece =>
    piece.stateFile.folder == folder && piece.stateFile.batch < batch && !piece.state.isInLog
  }

  /** The log or the location lacks some current write. */
  def isAnyLate: Boolean = currentWrites.values.exists(!_.state.isInLog)

  /** A write whose local files can be done without: the log has it. */
  def spare: Option[HeldPiece] = currentWrites.values.find { piece =>
    piece.state == Durable && piece.files.values.exists(_.isCounted)
  }

  /** The location has all batches up to this one; returns the writes for which that is the end. */
  def copied(batch: Long): Seq[HeldPiece] = {
    copiedBatch = math.max(copiedBatch, batch)
    pieces.filter { piece =>
      (piece.state.isInLog || piece.state == Begun) && piece.stateFile.batch <= batch
    }
  }

  /** No attempt at a batch that the location has begins any more. */
  def forgetAttempts(): Unit = attempts.filterInPlace { (_, together) =>
    !isCopied(together.stateFile)
  }

  /** Puts a piece that has left a state where it belongs. */
  def moved(piece: HeldPiece, before: HeldPieceState): Unit = {
    if (before == Begun) begunWrites -= piece
    if (before.isCurrent && !piece.state.isCurrent) currentWrites -= piece.stateFile.piece
    if (!before.isCurrent && piece.state.isCurrent) {
      piece.attempts.generation += 1
      piece.attempts.newestBegunAt = piece.begunAt
      piece.generation = piece.attempts.generation
      currentWrites(piece.stateFile.piece) = piece
    }
  }

  /** Throws where a piece is not where its state says. */
  def check(): Unit = {
    val wrong = begunWrites.filter(_.state != Begun) ++ currentWrites.collect {
      case (name, piece) if !piece.state.isCurrent || piece.stateFile.piece != name => piece
    }
    wrong.headOption.foreach { piece =>
      throw new Bug("held_run", s"${piece.stateFile.relative} of run $run is ${piece.state}, and " +
        "is not kept as that")
    }
  }
}
