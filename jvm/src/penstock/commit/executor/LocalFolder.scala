// Scala because: every executor has a local folder of its own, which the state of its tasks goes
// to first.
package penstock.commit.executor

import java.io.{File, RandomAccessFile}
import java.nio.channels.OverlappingFileLockException
import java.nio.file.{Files, Path}
import java.util.UUID

import scala.collection.mutable
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.SparkFolders

import penstock.BadCall
import penstock.settings.{CommitSettings, Keys}

/**
 * The folder of this JVM for files that are not durable yet. What a process that is gone has left
 * beside it is deleted unread: only the run that wrote a local file may trust it.
 */
private[penstock] final class LocalFolder extends Logging {
  import LocalFolder._

  /** By setting: the folder, and the file whose lock says that its owner is alive. */
  private val made = mutable.Map.empty[Option[String], (File, RandomAccessFile)]

  def of(settings: CommitSettings): File = synchronized {
    val (folder, _) = made.get(settings.localFolder).filter(_._1.isDirectory).getOrElse {
      val fresh = make(settings)
      made(settings.localFolder) = fresh
      fresh
    }
    folder
  }

  /** Deletes the folders with all that is in them, and gives up their locks. */
  private[commit] def close(): Unit = synchronized {
    made.values.foreach { case (folder, lock) =>
      SparkFolders.deleteRecursively(folder)
      lock.close()
    }
    made.clear()
  }

  private def make(settings: CommitSettings): (File, RandomAccessFile) = {
    val parent = settings.localFolder.map(Path.of(_)).getOrElse(SparkFolders.localFolder)
    try {
      Files.createDirectories(parent)
      if (settings.localFolder.isDefined) deleteAbandoned(parent)
      // Under its name only when it is locked: another process may look for what is abandoned.
      val id = UUID.randomUUID()
      val fresh = Files.createDirectory(parent.resolve(FreshPrefix + id))
      val lock = new RandomAccessFile(fresh.resolve(LockName).toFile, "rw")
      lock.getChannel.lock()
      (Files.move(fresh, parent.resolve(Prefix + id)).toFile, lock)
    } catch {
      case NonFatal(e) =>
        throw new BadCall(
          "local_folder",
          s"the folder for files on their way to the checkpoint, $parent, cannot be used " +
            s"(${e.getMessage}); free it, or set ${Keys.LocalDir} to another one")
    }
  }

  private def deleteAbandoned(parent: Path): Unit =
    Using.resource(Files.list(parent)) { all =>
      all.filter(_.getFileName.toString.startsWith(Prefix)).forEach { folder =>
        if (!isOwn(folder) && isAbandoned(folder)) {
          logInfo(s"deleting $folder, which an ended process has left")
          SparkFolders.deleteRecursively(folder.toFile)
        }
      }
    }

  /** Not to be looked at: to close a file gives up whatever lock this process has on it. */
  private def isOwn(folder: Path): Boolean =
    made.values.exists { case (mine, _) => mine.getName == folder.getFileName.toString }

  private def isAbandoned(folder: Path): Boolean =
    try
      Using.resource(new RandomAccessFile(folder.resolve(LockName).toFile, "rw")) { file =>
        Option(file.getChannel.tryLock()).isDefined
      }
    catch {
      case _: OverlappingFileLockException => false
      case NonFatal(_) => false
    }
}

private object LocalFolder {
  private val Prefix = "penstock-held-"
  private val FreshPrefix = "penstock-new-"
  private val LockName = "lock"
}
