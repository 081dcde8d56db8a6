// Scala because: executors copy the state of their tasks to the location, file by file.
package penstock.commit.executor

import penstock.Failpoint
import penstock.checkpoint.location.WholeFile
import penstock.commit.Retrying
import penstock.commit.channel.{MadeDurable, NotReleasing, Placed, Standing}
import penstock.settings.CommitSettings

/**
 * Copies the files of a piece to the checkpoint location, each whole or not at all; returns those
 * that are there. None of a piece that is over in the meantime: its local files are gone.
 */
private object StateCopies {
  def copy(piece: HeldPiece): Seq[String] = for {
    file <- piece.files.values.toSeq
    local <- file.local.toSeq
    if piece.enter(isSuperseded = !piece.state.isCurrent) {
      WholeFile.copy(piece.location, local, file.path)
    }
  } yield file.stateFile.relative
}

/** Without a log, or for a large piece: the copy in the location is what makes it durable. */
private[commit] final class CopyingState(
    resources: ExecutorParts,
    piece: HeldPiece,
    standing: Standing)
    extends Retrying(new CommitSettings(piece.conf), resources.clock) {
  private val batch = piece.stateFile.batch

  override def name: String = s"copying state of batch $batch (${piece.stateFile.piece})"

  override protected def isPointless: Boolean = !piece.state.isCurrent

  override protected def once(): Unit = {
    Failpoint.reach("before_state", standing.query, batch)
    // A thread before this one may have ended between the copy and its ack.
    if (piece.state == HeldPieceState.Complete) {
      val start = resources.clock.nanos
      StateCopies.copy(piece)
      piece.stepsNs("copy state") = resources.clock.nanos - start
      resources.heldState.tell(piece, HeldPieceEvent.CopyEnded)
    }
    Failpoint.reach("after_state", standing.query, batch)
    // One that is over was not copied, or not all of it.
    if (piece.state == HeldPieceState.Copied) acknowledge()
  }

  /** The driver first: it must hear of it, however often it takes to tell it. */
  private def acknowledge(): Unit =
    resources.toDriver.ask(MadeDurable(piece.run, Seq(piece.durable(Nil)))) match {
      case now: Standing =>
        resources.heldState.tell(piece, HeldPieceEvent.DurableInLocation)
        resources.heldState.batchesCopied(piece.run, now)
      case NotReleasing => resources.forgetRun(piece.run)
    }

  override protected def giveUp(e: Throwable): Unit = {
    val reason = s"$name to ${piece.files.values.head.path.getParent} failed: ${e.getMessage}. " +
      "Make it writable again and restart the query: it goes on from the last durable batch"
    logError(reason, e)
    resources.questions.giveUp(piece.run, reason)
  }
}

/** With a log: the piece is durable there, and the location follows. */
private[commit] final class PlacingState(
    resources: ExecutorParts,
    piece: HeldPiece,
    standing: Standing)
    extends Retrying(new CommitSettings(piece.conf), resources.clock) {
  private val batch = piece.stateFile.batch

  override def name: String =
    s"placing state of batch $batch of query ${standing.query} (${piece.stateFile.piece})"

  override protected def isPointless: Boolean = !piece.state.isCurrent

  override protected def once(): Unit = {
    val paths = StateCopies.copy(piece)
    resources.toDriver.ask(Placed(piece.run, batch, paths)) match {
      case now: Standing =>
        resources.heldState.tell(piece, HeldPieceEvent.DurableInLocation)
        resources.heldState.batchesCopied(piece.run, now)
      case NotReleasing => resources.forgetRun(piece.run)
    }
  }

  /** The driver reads the piece from the log when nobody places it. */
  override protected def giveUp(e: Throwable): Unit = logWarning(s"$name failed", e)
}
