package penstock.checkpoint

import java.io.{ByteArrayOutputStream, FileNotFoundException}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileStatus, FSDataInputStream, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.penstock.SparkInternals

import penstock.{Clock, Failpoint}
import penstock.commit._

/**
 * The files of a checkpoint, on the driver and on executors.
 *
 * Held back, and released in the order of `penstock.commit.Release`: `offsets/N`, `commits/N` and
 * the changelogs of state, with their checksums. A snapshot of state waits for its batch. All else
 * that Spark writes through this class passes straight through (`metadata`, `sources/N`, a file
 * sink's log, schemas), and everything does in mode `sync`, but for the marker, which precedes
 * `commits/N` of a batch that our sink sealed.
 *
 * Before Spark first reads the offset or commit log of a run, on the stream thread, the run takes
 * over the query and brings the checkpoint up to the last marker (Recovery). Not earlier: until
 * the stream thread runs, Spark has not yet checked for a second active query.
 */
final class PenstockFileManager(path: Path, conf: Configuration) extends CheckpointFileManager {

  private val mode = new Settings(conf).mode
  private def resources = JvmResources.here
  private val files: CheckpointFileManager =
    if (mode == Mode.Sync) Location.asSpark(path, conf) else Location.direct(path, conf)

  override def createAtomic(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    LogFile.of(file) match {
      case Some(log) => log.create(files, file, overwrite)
      case None =>
        heldState(file) match {
          case Some((run, what)) if what.isSnapshot =>
            resources.heldState.createSnapshot(run, file, what, files, conf)
          case Some((run, what)) => resources.heldState.create(run, file, what, files, conf)
          case None => files.createAtomic(file, overwrite || SinkLog.isRunAgain(file))
        }
    }

  override def list(folder: Path, filter: PathFilter): Array[FileStatus] = {
    val isLog = LogFile.isLogFolder(folder)
    if (isLog) Recovery.ensure(folder.getParent, files, conf)
    val there = files.list(folder, filter)
    if (isLog) there ++ pendingIn(folder, filter, there.map(_.getPath.getName).toSet)
    else there.filterNot(entry => SinkLog.isRunAgain(entry.getPath))
  }

  /** What is held back is there for the query itself, and for no one else. */
  private def pendingIn(
      folder: Path,
      filter: PathFilter,
      known: Set[String]): Seq[FileStatus] = for {
    run <- QueryRuns.ofCheckpoint(folder.getParent.toString).toSeq
    if SparkInternals.streamThread.exists(_._2 == run.run)
    queue <- run.queue.toSeq
    (name, bytes) <- queue.pendingIn(folder.getName) if !known(name)
    file = new Path(folder, name) if filter.accept(file)
  } yield new FileStatus(bytes, false, 1, bytes, Clock.System.wallMs, file)

  override def open(file: Path): FSDataInputStream = LogFile.of(file) match {
    case Some(log) => log.open(files, file, conf)
    case None =>
      heldState(file) match {
        case Some((run, what)) =>
          resources.heldState.localCopy(run, what) match {
            case Some(local) =>
              try SparkInternals.openLocal(local, conf)
              catch {
                // Between the two it was copied, or dropped to make room.
                case _: FileNotFoundException => openWhenCopied(run, what, file)
              }
            case None => openWhenCopied(run, what, file)
          }
        case None => files.open(file)
      }
  }

  override def mkdirs(folder: Path): Unit = files.mkdirs(folder)

  override def exists(file: Path): Boolean = LogFile.of(file) match {
    case Some(log) => log.exists(files, file)
    case None =>
      heldState(file) match {
        // A name with a unique id is there only if this run has written it, which it knows.
        case Some((run, what)) if !what.isSnapshot && !what.piece.contains('/') =>
          resources.heldState.has(run, what)
        case _ => !SinkLog.isRunAgain(file) && files.exists(file)
      }
  }

  override def delete(file: Path): Unit = LogFile.of(file).flatMap(_.run.queue) match {
    case Some(queue) => queue.deleteAsked(s"${file.getParent.getName}/${file.getName}")
    case None => files.delete(file)
  }

  override def isLocal: Boolean = files.isLocal

  override def createCheckpointDirectory(): Path = files.createCheckpointDirectory()

  override def close(): Unit = files.close()

  /** The run and what the file is to it, if it is state of a run that holds its state back. */
  private def heldState(file: Path): Option[(String, StateFile)] =
    if (mode == Mode.Sync) None
    else
      for {
        what <- StateFile.of(file)
        run <- Option(conf.get(SparkInternals.RunIdKey)) if resources.questions.isReleasing(run)
      } yield (run, what)

  /**
   * A changelog that was written on another executor may still be on its way to the location: the
   * driver knows. One that nobody has any more is an error, never an older state.
   */
  private def openWhenCopied(run: String, what: StateFile, file: Path): FSDataInputStream =
    try files.open(file)
    catch {
      case e: FileNotFoundException =>
        if (resources.questions.awaitArrival(run, what, new Settings(conf))(files.exists(file))) {
          files.open(file)
        } else throw e
    }
}

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
      val there = bytes.getOrElse(throw new FileNotFoundException(s"$file does not exist"))
      SparkInternals.openBytes(
        if (run.usesSparksProvider) there else ProviderName.onRead(there, conf))
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
    run <- QueryRuns.ofCheckpoint(root.toString)
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
    Naming.of(log)(WholeFile.create(files, file, bytes))
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
    run.log.fold(write())(Naming.of(_)(write()))
    Failpoint.reach("after_offsets", run.query, batch)
  }
}

/** A file that is there already is another run's: say so, if that run has taken over. */
private object Naming {
  def of(log: TaskLog)(write: => Unit): Unit =
    try write
    catch {
      case e: FileAlreadyExistsException =>
        log.refuseIfTakenOver()
        throw e
      case e: penstock.BadCall if e.code == "two_queries" =>
        log.refuseIfTakenOver()
        throw e
    }
}
