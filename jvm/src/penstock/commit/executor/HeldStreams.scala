// Scala because: Spark's state stores write their files into these output streams, key by key.
package penstock.commit.executor

import java.io.{BufferedOutputStream, File, FileOutputStream, IOException, OutputStream}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import penstock.Failpoint
import penstock.checkpoint.location.StateFile
import penstock.commit.channel.{HowFar, NotReleasing, Standing}
import penstock.commit.driver.ReleaseQueues
import penstock.settings.{CommitSettings, Keys}

/** A file of the local folder; what fails names the folder, and the setting for another one. */
final class LocalFile(file: File) extends OutputStream {
  private val out = naming(new BufferedOutputStream(new FileOutputStream(file)))

  override def write(byte: Int): Unit = naming(out.write(byte))

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit =
    naming(out.write(bytes, offset, length))

  override def flush(): Unit = naming(out.flush())

  override def close(): Unit = naming(out.close())

  private def naming[A](body: => A): A =
    try body
    catch {
      case e: IOException =>
        throw new IOException(
          s"the state of a batch cannot be written to ${file.getParent} (${e.getMessage}); free " +
            s"space there, or set ${Keys.LocalDir} to a folder with more",
          e)
    }
}

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
        throw e
    }
    HeldState.closed(piece, member, local.length(), System.nanoTime() - start)
  }

  /** What a full disk does not take is of no use any more. */
  override def cancel(): Unit = if (!isOver) {
    isOver = true
    try out.close()
    catch { case _: IOException => }
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
    joined: Option[Joined],
    inner: CancellableFSDataOutputStream,
    settings: CommitSettings,
    entered: SnapshotAppend)
    extends CancellableFSDataOutputStream(inner) {
  private val mine = joined.map(_.expected)
  private var isOver = false

  override def close(): Unit = if (!isOver) {
    try {
      Copier.await(run, settings.retryMs)(_.mayShowSnapshot(what.batch, joined.isDefined))
      Failpoint.reach("before_snapshot", run, what.batch)
      if (joined.exists(_.isExpected) && isCommitted) drop() else enter()
    } catch {
      case e: Throwable =>
        cancel()
        throw e
    }
    if (!isOver) entered.perform()
    if (!isOver) mine.foreach(one => HeldState.closed(one.piece, one.member, 0, 0))
    isOver = true
  }

  override def cancel(): Unit = if (!isOver) {
    isOver = true
    inner.cancel()
    joined.filterNot(_.isKept).map(_.expected).foreach { one =>
      HeldState.cancelled(one.piece, one.member)
    }
  }

  private def enter(): Unit = {
    val isIn = mine.fold { inner.close(); true } { one =>
      one.piece.enter(isSuperseded = !HeldState.isCurrent(one))(inner.close())
    }
    if (!isIn) {
      isOver = true
      inner.cancel()
    }
  }

  private def drop(): Unit = {
    isOver = true
    inner.cancel()
    mine.foreach(one => HeldState.dropped(one.piece))
  }

  private def isCommitted: Boolean = ReleaseQueues.ask(HowFar(run)) match {
    case standing: Standing => standing.committed >= what.batch
    case NotReleasing => false
  }
}
