// Scala because: executors copy the state of their tasks to the location, file by file.
package penstock.commit.executor

import penstock.Failpoint
import penstock.checkpoint.location.WholeFile
import penstock.commit.Retrying
import penstock.commit.channel.{MadeDurable, NotReleasing, Placed, Standing}
import penstock.commit.driver.ReleaseQueues
import penstock.settings.CommitSettings

/** Copies the files of a piece to the checkpoint location, each whole or not at all. */
private object StateCopies {
  def copy(piece: HeldPiece): Seq[String] = piece.members.values.toSeq.flatMap { member =>
    member.local.map { local =>
      piece.enter(HeldState.isSuperseded(piece))(WholeFile.copy(piece.files, local, member.file))
      member.what.relative
    }
  }
}

/** Without a log, or for a large piece: the copy in the location is what makes it durable. */
private[commit] final class CopyingState(piece: HeldPiece, standing: Standing)
    extends Retrying(new CommitSettings(piece.conf)) {

  override def name: String = s"copying state of batch ${piece.what.batch} (${piece.what.piece})"

  override protected def isPointless: Boolean = HeldState.isSuperseded(piece)

  override protected def once(): Unit = {
    Failpoint.reach("before_state", standing.query, piece.what.batch)
    val start = System.nanoTime()
    if (!piece.isCopied) {
      StateCopies.copy(piece)
      piece.steps("copy state") = System.nanoTime() - start
      piece.isCopied = true
    }
    Failpoint.reach("after_state", standing.query, piece.what.batch)
    // The driver first: it must hear of it, however often it takes to tell it.
    ReleaseQueues.ask(MadeDurable(piece.run, Seq(DurablePiece.of(piece, Nil)))) match {
      case now: Standing =>
        HeldState.durable(piece, isInLocation = true)
        HeldState.forgetCopied(piece.run, now)
      case NotReleasing => HeldState.forgetRun(piece.run)
    }
  }

  override protected def giveUp(e: Throwable): Unit = {
    val reason = s"$name to ${piece.members.values.head.file.getParent} failed: ${e.getMessage}. " +
      "Make it writable again and restart the query: it goes on from the last durable batch"
    logError(reason, e)
    DriverQuestions.giveUp(piece.run, reason)
  }
}

/** With a log: the piece is durable there, and the location follows. */
private[commit] final class PlacingState(piece: HeldPiece, standing: Standing)
    extends Retrying(new CommitSettings(piece.conf)) {

  override def name: String =
    s"placing state of batch ${piece.what.batch} of query ${standing.query} (${piece.what.piece})"

  override protected def isPointless: Boolean = HeldState.isSuperseded(piece)

  override protected def once(): Unit = {
    val paths = StateCopies.copy(piece)
    ReleaseQueues.ask(Placed(piece.run, piece.what.batch, paths)) match {
      case now: Standing =>
        HeldState.durable(piece, isInLocation = true)
        HeldState.forgetCopied(piece.run, now)
      case NotReleasing => HeldState.forgetRun(piece.run)
    }
  }

  /** The driver reads the piece from the log when nobody places it. */
  override protected def giveUp(e: Throwable): Unit = logWarning(s"$name failed", e)
}
