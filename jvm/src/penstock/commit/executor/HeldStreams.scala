// Scala because: Spark's state stores write their files into these output streams, key by key.
package penstock.commit.executor

import java.io.{BufferedOutputStream, File, FileOutputStream, IOException, OutputStream}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import penstock.{Clock, Failpoint}
import penstock.checkpoint.location.StateFile
import penstock.commit.channel.{HowFar, NotReleasing, Standing}
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
private final class HeldStream(
    held: HeldState,
    expected: Expected,
    local: File,
    out: OutputStream,
    clock: Clock)
    extends CancellableFSDataOutputStream(out) {
  private var isOver = false

  override def close(): Unit = if (!isOver) {
    isOver = true
    val start = clock.nanos
    try out.close()
    catch {
      case e: IOException =>
        held.cancelled(expected)
        throw e
    }
    held.closed(expected, local.length(), clock.nanos - start)
  }

  /** What a full disk does not take is of no use any more. */
  override def cancel(): Unit = if (!isOver) {
    isOver = true
    try out.close()
    catch { case _: IOException => }
    finally held.cancelled(expected)
  }
}

/**
 * The file that makes a snapshot whole; its close waits until the snapshot may be seen. One that
 * its batch was to wait for, and did not, is of an attempt that was given up: it is dropped.
 */
private final class SnapshotStream(
    resources: ExecutorParts,
    run: String,
    stateFile: StateFile,
    joined: Option[Joined],
    inner: CancellableFSDataOutputStream,
    settings: CommitSettings,
    append: SnapshotAppend)
    extends CancellableFSDataOutputStream(inner) {
  private val held = resources.heldState
  private val batch = stateFile.batch
  private val expected = joined.map(_.expected)
  private var isOver = false

  override def close(): Unit = if (!isOver) {
    try {
      resources.copier.await(run, settings.retryMs)(_.mayShowSnapshot(batch, joined.isDefined))
      Failpoint.reach("before_snapshot", run, batch)
      if (joined.exists(_.isExpected) && isCommitted) drop() else enter()
    } catch {
      case e: Throwable =>
        cancel()
        throw e
    }
    if (!isOver) append.perform()
    if (!isOver) expected.foreach(held.closed(_, bytes = 0, ns = 0))
    isOver = true
  }

  override def cancel(): Unit = if (!isOver) {
    isOver = true
    inner.cancel()
    joined.filterNot(_.isKept).map(_.expected).foreach(held.cancelled)
  }

  private def enter(): Unit = {
    val isIn = expected.fold { inner.close(); true } { snapshot =>
      snapshot.piece.enter(isSuperseded = !held.isCurrent(snapshot))(inner.close())
    }
    if (!isIn) {
      isOver = true
      inner.cancel()
    }
  }

  private def drop(): Unit = {
    isOver = true
    inner.cancel()
    expected.foreach(snapshot => held.tell(snapshot.piece, HeldPieceEvent.BatchWithoutIt))
  }

  private def isCommitted: Boolean = resources.toDriver.ask(HowFar(run)) match {
    case standing: Standing => standing.committed >= batch
    case NotReleasing => false
  }
}
