package penstock.checkpoint

import java.io.ByteArrayOutputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileStatus, FSDataInputStream, Path, PathFilter, UnsupportedFileSystemException}
import org.apache.spark.sql.execution.streaming.checkpointing.{CheckpointFileManager, FileContextBasedCheckpointFileManager, FileSystemBasedCheckpointFileManager}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import penstock.Failpoint

/**
 * Spark's own file manager with two steps added, both on the stream thread of the driver:
 *
 *   1. Before Spark first reads the offset or commit log of a run, the run takes over the query
 *      and brings the checkpoint up to the last marker (Recovery). Not earlier: until the stream
 *      thread runs, Spark has not yet checked for a second active query.
 *   1. When Spark closes `commits/N` of a batch that our sink sealed, the marker is appended
 *      first, carrying the bytes, and the file is written after it. A crash between the two
 *      leaves a batch that is visible and that recovery will not run again; the other way round
 *      it would leave a batch that Spark counts as done and nobody ever sees.
 *
 * All else passes through.
 */
final class MarkerFileManager(path: Path, conf: Configuration) extends CheckpointFileManager {

  private val files: CheckpointFileManager =
    try new FileContextBasedCheckpointFileManager(path, conf)
    catch {
      case _: UnsupportedFileSystemException => new FileSystemBasedCheckpointFileManager(path, conf)
    }

  override def createAtomic(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    LogFile.of(file) match {
      case Some(LogFile(run, LogFile.Commits, batch)) if run.isSealed(batch) =>
        new MarkedCommit(run, batch, file)
      case Some(LogFile(run, LogFile.Offsets, batch)) =>
        new FencedOffsets(files.createAtomic(file, overwrite), run, batch)
      case _ => files.createAtomic(file, overwrite)
    }

  override def list(folder: Path, filter: PathFilter): Array[FileStatus] = {
    if (LogFile.isLogFolder(folder)) Recovery.ensure(folder.getParent, files, conf)
    files.list(folder, filter)
  }

  override def open(file: Path): FSDataInputStream = files.open(file)

  override def mkdirs(folder: Path): Unit = files.mkdirs(folder)

  override def exists(file: Path): Boolean = files.exists(file)

  override def delete(file: Path): Unit = files.delete(file)

  override def isLocal: Boolean = files.isLocal

  override def createCheckpointDirectory(): Path = files.createCheckpointDirectory()

  override def close(): Unit = files.close()

  /** `commits/N` of a sealed batch: kept until it is whole, then marker, then file. */
  private final class MarkedCommit(run: QueryRun, batch: Long, file: Path)
      extends CancellableFSDataOutputStream(new ByteArrayOutputStream()) {
    private var done = false

    override def close(): Unit = if (!done) {
      done = true
      val bytes = underlyingStream.asInstanceOf[ByteArrayOutputStream].toByteArray
      Failpoint.reach("before_marker", run.query, batch)
      run.mark(batch, bytes)
      Failpoint.reach("after_marker", run.query, batch)
      naming(run)(WholeFile.write(files, file, bytes))
    }

    override def cancel(): Unit = done = true
  }

  /** `offsets/N`: not written by a run that was taken over, whose batch would be in the way. */
  private final class FencedOffsets(
      inner: CancellableFSDataOutputStream,
      run: QueryRun,
      batch: Long)
      extends CancellableFSDataOutputStream(inner) {
    private var done = false

    override def close(): Unit = if (!done) {
      run.ensureCurrent()
      naming(run)(inner.close())
      done = true
      Failpoint.reach("after_offsets", run.query, batch)
    }

    override def cancel(): Unit = {
      done = true
      inner.cancel()
    }
  }

  /** A file that is there already is another run's: say so, if that run has taken over. */
  private def naming(run: QueryRun)(write: => Unit): Unit =
    try write
    catch {
      case e: FileAlreadyExistsException =>
        run.refuseIfTakenOver()
        throw e
    }
}

/** `root/offsets/N` or `root/commits/N` of a run of this driver. */
private[checkpoint] final case class LogFile(run: QueryRun, folder: String, batch: Long)

private[checkpoint] object LogFile {
  val Offsets = "offsets"
  val Commits = "commits"

  def isLogFolder(folder: Path): Boolean =
    folder.getName == Offsets || folder.getName == Commits

  def of(file: Path): Option[LogFile] = for {
    folder <- Option(file.getParent) if isLogFolder(folder)
    root <- Option(folder.getParent)
    run <- QueryRuns.ofCheckpoint(root.toString)
    batch <- file.getName.toLongOption
  } yield LogFile(run, folder.getName, batch)
}

private[checkpoint] object WholeFile {
  def write(files: CheckpointFileManager, file: Path, bytes: Array[Byte]): Unit = {
    val out = files.createAtomic(file, overwriteIfPossible = false)
    try {
      out.write(bytes)
      out.close()
    } catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
  }
}
