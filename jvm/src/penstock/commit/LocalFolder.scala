package penstock.commit

import java.io.{File, RandomAccessFile}
import java.nio.channels.OverlappingFileLockException
import java.nio.file.{Files, Path}
import java.util.UUID

import scala.collection.mutable
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.SparkInternals

import penstock.BadCall

/**
 * The folder of this JVM for files that are not durable yet. What a process that is gone has left
 * beside it is deleted unread: only the run that wrote a local file may trust it.
 */
private[penstock] object LocalFolder extends Logging {
  private val Prefix = "penstock-held-"
  private val LockName = "lock"
  /** By setting: the folder, and the file whose lock says that its owner is alive. */
  private val made = mutable.Map.empty[Option[String], (File, RandomAccessFile)]

  def of(settings: Settings): File = synchronized {
    val (folder, _) = made.get(settings.localFolder).filter(_._1.isDirectory).getOrElse {
      val fresh = make(settings)
      made(settings.localFolder) = fresh
      fresh
    }
    folder
  }

  private def make(settings: Settings): (File, RandomAccessFile) = {
    val parent = settings.localFolder.map(Path.of(_)).getOrElse(SparkInternals.localFolder)
    try {
      Files.createDirectories(parent)
      if (settings.localFolder.isDefined) deleteAbandoned(parent)
      val folder = Files.createDirectory(parent.resolve(Prefix + UUID.randomUUID()))
      val lock = new RandomAccessFile(folder.resolve(LockName).toFile, "rw")
      lock.getChannel.lock()
      (folder.toFile, lock)
    } catch {
      case NonFatal(e) =>
        throw new BadCall(
          "local_folder",
          s"the folder for files on their way to the checkpoint, $parent, cannot be used " +
            s"(${e.getMessage}); free it, or set ${Settings.LocalFolderKey} to another one")
    }
  }

  private def deleteAbandoned(parent: Path): Unit =
    Using.resource(Files.list(parent)) { all =>
      all.filter(_.getFileName.toString.startsWith(Prefix)).forEach { folder =>
        if (isAbandoned(folder)) {
          logInfo(s"deleting $folder, which an ended process has left")
          SparkInternals.deleteRecursively(folder.toFile)
        }
      }
    }

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
