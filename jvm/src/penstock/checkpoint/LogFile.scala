// Scala because: Spark writes offsets and commits of every batch into streams of its own Java
// class.
package penstock.checkpoint

import java.io.{ByteArrayOutputStream, FileNotFoundException}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FSDataInputStream, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import penstock.{BadCall, Failpoint}
import penstock.checkpoint.location.WholeFile
import penstock.commit.driver.ReleaseQueue
import penstock.query.{Gate, QueryRun, QueryRuns, TaskLog}

/** `root/offsets/N` or `root/commits/N` of a run of this driver. */
private[checkpoint] final case class LogFile(run: QueryRun, folder: String, batch: Long) {
  import LogFile._

  private def relative: String = s"$folder/$batch"

  def create(
      files: CheckpointFileManager,
      file: Path,
      overwrite: Boolean): CancellableFSDataOutputStream = (run.queue, folder) match {
    case (Some(queue), Offsets) => new HeldOffsets(run, queue, batch)
    case (Some(queue), _) => new HeldCommit(run, queue, batch)
    case (None, Commits) if run.log.exists(_.isSealed(batch)) =>
      new MarkedCommit(run.log.get, files, batch, file)
    case (None, Offsets) => new DirectOffsets(run, files, batch, file, overwrite)
    case _ => files.createAtomic(file, overwrite)
  }

  def open(files: CheckpointFileManager, file: Path, conf: Configuration): FSDataInputStream =
    if (folder == Offsets) {
      val bytes = run.queue.flatMap(_.pending(relative)).orElse(WholeFile.read(files, file))
      val offsets = bytes.getOrElse(throw new FileNotFoundException(s"$file does not exist"))
      OpenFiles.bytes(
        if (run.usesSparksProvider) offsets else ProviderName.onRead(offsets, conf))
    } else files.open(file)

  /** What cannot be there yet is known: asking a slow store before every batch adds nothing. */
  def exists(files: CheckpointFileManager, file: Path): Boolean = run.queue match {
    case Some(queue) =>
      queue.pending(relative).isDefined ||
        (batch <= math.max(run.highest, queue.copied) && files.exists(file))
    case None => files.exists(file)
  }
}

private[checkpoint] object LogFile {
  val Offsets = "offsets"
  val Commits = "commits"

  def isLogFolder(folder: Path): Boolean =
    folder.getName == Offsets || folder.getName == Commits

  def of(file: Path): Option[LogFile] = for {
    folder <- Option(file.getParent) if isLogFolder(folder)
    root <- Option(folder.getParent)
    run <- QueryRuns.here.ofCheckpoint(root.toString)
    batch <- file.getName.toLongOption
  } yield LogFile(run, folder.getName, batch)
}

/** A file that is kept in memory until Spark closes it. */
private abstract class HeldLogFile
    extends CancellableFSDataOutputStream(new ByteArrayOutputStream()) {
  private var isOver = false

  protected def closed(bytes: Array[Byte]): Unit

  override def close(): Unit = if (!isOver) {
    isOver = true
    closed(underlyingStream.asInstanceOf[ByteArrayOutputStream].toByteArray)
  }

  override def cancel(): Unit = isOver = true
}

/** `offsets/N`, held back: the batch is computed at once, unless it must wait its turn. */
private final class HeldOffsets(run: QueryRun, queue: ReleaseQueue, batch: Long)
    extends HeldLogFile {
  override protected def closed(bytes: Array[Byte]): Unit = {
    queue.offsetsWritten(batch, ProviderName.onWrite(bytes))
    Failpoint.reach("after_offsets", run.query, batch)
    if (Gate.isSynchronous(run, batch)) queue.awaitReleased(batch) else queue.awaitCompute(batch)
  }
}

/** `commits/N`, held back until all of the batch is durable. */
private final class HeldCommit(run: QueryRun, queue: ReleaseQueue, batch: Long)
    extends HeldLogFile {
  override protected def closed(bytes: Array[Byte]): Unit = {
    val required =
      if (Gate.isSkipped(run, batch)) Set.empty[String]
      else RequiredPieces.of(run.query, batch, bytes)
    queue.commitWritten(batch, bytes, required)
    queue.check()
    if (Gate.mustCommitAtOnce(run)) queue.awaitCommitted(batch)
  }
}

/** Mode `sync`: `commits/N` of a sealed batch is kept until it is whole; then marker, then file. */
private final class MarkedCommit(
    log: TaskLog,
    files: CheckpointFileManager,
    batch: Long,
    file: Path)
    extends HeldLogFile {
  override protected def closed(bytes: Array[Byte]): Unit = {
    Failpoint.reach("before_marker", log.query, batch)
    log.mark(batch, bytes, Nil, copied = batch - 1)
    Failpoint.reach("after_marker", log.query, batch)
    ConflictingRun.named(log)(WholeFile.create(files, file, bytes))
    log.forget(batch)
  }
}

/** Mode `sync`: `offsets/N` names Spark's provider; a run that was taken over does not write it. */
private final class DirectOffsets(
    run: QueryRun,
    files: CheckpointFileManager,
    batch: Long,
    file: Path,
    overwrite: Boolean)
    extends HeldLogFile {
  override protected def closed(bytes: Array[Byte]): Unit = {
    def write(): Unit = WholeFile.write(files, file, ProviderName.onWrite(bytes), overwrite)
    run.log.foreach(_.ensureCurrent())
    run.log.fold(write())(ConflictingRun.named(_)(write()))
    Failpoint.reach("after_offsets", run.query, batch)
  }
}

/** A file that exists already is another run's: throws Fenced if that run has taken over. */
private object ConflictingRun {
  def named(log: TaskLog)(write: => Unit): Unit =
    try write
    catch {
      case e: FileAlreadyExistsException =>
        log.refuseIfTakenOver()
        throw e
      case e: BadCall if e.code == "two_queries" =>
        log.refuseIfTakenOver()
        throw e
    }
}
