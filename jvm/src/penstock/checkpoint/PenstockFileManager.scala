// Scala because: it implements Spark's CheckpointFileManager, which checkpoints' settings name
// by this full name, for every file of every task.
package penstock.checkpoint

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.penstock.RunningQuery

import penstock.checkpoint.location.{Location, StateFile}
import penstock.commit.executor.Arrival
import penstock.commit.jvm.JvmResources
import penstock.query.QueryRuns
import penstock.settings.{CommitSettings, Connection, Mode}

/**
 * The files of a checkpoint, on the driver and on executors.
 *
 * Held back, and released in the order of `penstock.commit.driver.Release`: `offsets/N`, `commits/N` and
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

  private val mode = new CommitSettings(conf).mode
  private def resources = JvmResources.here
  private val files = Location.of(path, conf)

  override def createAtomic(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    LogFile.of(file) match {
      case Some(log) => log.create(files, file, overwrite)
      case None =>
        heldState(file) match {
          case Some((run, stateFile)) if stateFile.isSnapshot =>
            resources.heldState.createSnapshot(run, file, stateFile, files, conf)
          case Some((run, stateFile)) => resources.heldState.create(run, file, stateFile, files, conf)
          case None =>
            SinkLog.firstEntry(files, file) match {
              case Some(first) => new SecondEntry(files, first, file, conf)
              case None => files.createAtomic(file, overwrite)
            }
        }
    }

  override def list(folder: Path, filter: PathFilter): Array[FileStatus] = {
    val isLog = LogFile.isLogFolder(folder)
    if (isLog) Recovery.ensure(folder.getParent, files, conf)
    val listed = files.list(folder, filter)
    if (isLog) listed ++ pendingIn(folder, filter, listed.map(_.getPath.getName).toSet)
    else listed.filterNot(entry => SinkLog.isRunAgain(entry.getPath))
  }

  /** What is held back is there for the query itself, and for no one else. */
  private def pendingIn(
      folder: Path,
      filter: PathFilter,
      known: Set[String]): Seq[FileStatus] = for {
    run <- QueryRuns.here.ofCheckpoint(folder.getParent.toString).toSeq
    if RunningQuery.streamThread.exists(_._2 == run.run)
    queue <- run.queue.toSeq
    (name, bytes) <- queue.pendingIn(folder.getName) if !known(name)
    file = new Path(folder, name) if filter.accept(file)
  } yield new FileStatus(bytes, false, 1, bytes, JvmResources.here.clock.wallMs, file)

  override def open(file: Path): FSDataInputStream = LogFile.of(file) match {
    case Some(log) => log.open(files, file, conf)
    case None =>
      heldState(file) match {
        case Some((run, stateFile)) =>
          resources.heldState.localCopy(run, stateFile) match {
            case Some(local) =>
              try OpenFiles.local(local, conf)
              catch {
                // Between the two it was copied, or dropped to make room.
                case _: FileNotFoundException => openWhenCopied(run, stateFile, file)
              }
            case None => openWhenCopied(run, stateFile, file)
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
        case Some((run, stateFile)) if !stateFile.isSnapshot && !stateFile.piece.contains('/') =>
          resources.heldState.has(run, stateFile)
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
        stateFile <- StateFile.of(file)
        run <- Option(conf.get(RunningQuery.RunIdKey)) if resources.questions.isReleasing(run)
      } yield (run, stateFile)

  /**
   * A changelog that was written on another executor may still be on its way to the location: the
   * driver knows. What the log has of it by then is read there. One that nobody has any more is an
   * error, never an older state.
   */
  private def openWhenCopied(run: String, stateFile: StateFile, file: Path): FSDataInputStream =
    try files.open(file)
    catch {
      case e: FileNotFoundException =>
        resources.questions.awaitArrival(run, stateFile, new CommitSettings(conf))(files.exists(file)) match {
          case Some(Arrival.InLocation) => files.open(file)
          case Some(Arrival.InLog(query, logged)) =>
            OpenFiles.bytes(
              JvmResources.here.gateways.to(Connection.of(conf).get).queries.readFile(query, logged.entry))
          case None => throw e
        }
    }
}
