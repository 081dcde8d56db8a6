package penstock.commit

import java.io.{File, IOException, OutputStream}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** A file on its way to the local folder. */
private final class HeldStream(piece: HeldPiece, member: Member, local: File, out: OutputStream)
    extends CancellableFSDataOutputStream(out) {
  private var isOver = false

  override def close(): Unit = if (!isOver) {
    isOver = true
    val start = System.nanoTime()
    try out.close()
    catch {
      case e: IOException =>
        HeldState.cancelled(piece, member)
        throw HeldState.localFailure(local, e)
    }
    HeldState.closed(piece, member, local.length(), System.nanoTime() - start)
  }

  override def cancel(): Unit = if (!isOver) {
    isOver = true
    try out.close()
    finally HeldState.cancelled(piece, member)
  }
}

/**
 * The file that makes a snapshot whole; its close waits until the snapshot may be seen. One that
 * its batch was to wait for, and did not, is of an attempt that was given up: it is dropped.
 */
private final class SnapshotStream(
    run: String,
    what: StateFile,
    joined: Option[Expected],
    isExpected: Boolean,
    isTriedAgain: Boolean,
    inner: CancellableFSDataOutputStream,
    settings: Settings,
    entered: SnapshotAppend)
    extends CancellableFSDataOutputStream(inner) {
  private var isOver = false

  override def close(): Unit = if (!isOver) {
    try {
      if (joined.isDefined) Copier.await(run, settings.retryMs)(_.released >= what.batch)
      else Copier.await(run, settings.retryMs)(_.copied >= what.batch)
      if (isExpected && isCommitted) drop() else enter()
    } catch {
      case e: Throwable =>
        cancel()
        throw e
    }
    if (!isOver) entered.perform()
    if (!isOver) joined.foreach { mine =>
      mine.member.isDurable = true
      HeldState.closed(mine.piece, mine.member, 0, 0)
    }
    isOver = true
  }

  override def cancel(): Unit = if (!isOver) {
    isOver = true
    inner.cancel()
    if (!isTriedAgain) joined.foreach(mine => HeldState.cancelled(mine.piece, mine.member))
  }

  private def enter(): Unit = {
    val isIn = joined.fold { inner.close(); true } { mine =>
      mine.piece.enter(isSuperseded = !HeldState.isCurrent(mine))(inner.close())
    }
    if (!isIn) {
      isOver = true
      inner.cancel()
    }
  }

  private def drop(): Unit = {
    isOver = true
    inner.cancel()
    joined.foreach(mine => HeldState.dropped(mine.piece))
  }

  private def isCommitted: Boolean = Releases.ask(HowFar(run)) match {
    case standing: Standing => standing.committed >= what.batch
    case NotReleasing => false
  }
}
