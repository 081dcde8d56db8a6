// Scala because: it extends Spark's own file managers, on executors as well as on the driver.
package penstock.checkpoint.location

import java.io.BufferedOutputStream
import java.nio.file.{FileAlreadyExistsException => NioFileExists, Files, Path => NioPath, Paths, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FSDataOutputStream, Path, UnsupportedFileSystemException}
import org.apache.spark.sql.execution.streaming.checkpointing.{CheckpointFileManager, FileContextBasedCheckpointFileManager, FileSystemBasedCheckpointFileManager}

import penstock.BadCall
import penstock.settings.{CommitSettings, Keys}

/** The files of a checkpoint location, as they are: nothing is held back here. */
private[penstock] object Location {

  private val ClassKey = "spark.sql.streaming.checkpointFileManagerClass"

  /** The way to the location that the settings ask for. */
  def of(path: Path, conf: Configuration): CheckpointFileManager =
    if (new CommitSettings(conf).hasDirectFiles) direct(path, conf) else asSpark(path, conf)

  /** The way to the location that Spark takes without us. */
  private def asSpark(path: Path, conf: Configuration): CheckpointFileManager =
    ofUser(path, conf).getOrElse {
      try new FileContextBasedCheckpointFileManager(path, conf)
      catch {
        case _: UnsupportedFileSystemException =>
          new FileSystemBasedCheckpointFileManager(path, conf)
      }
    }

  /** The quickest way to the location. */
  private def direct(path: Path, conf: Configuration): CheckpointFileManager =
    ofUser(path, conf).getOrElse {
      val scheme = path.toUri.getScheme
      val isLocal = scheme == "file" || (scheme == null && isLocalByDefault(conf))
      if (isLocal) new LocalCheckpoint(path, conf) else asSpark(path, conf)
    }

  /** The user's own file manager, made as Spark would make it were it not for ours. */
  private def ofUser(path: Path, conf: Configuration): Option[CheckpointFileManager] =
    new CommitSettings(conf).fileManager.map { named =>
      if (conf.get(ClassKey) == named) {
        throw new BadCall(
          "bad_setting",
          s"${Keys.CheckpointFileManager} is $named, and so is $ClassKey; set it to the class that " +
            "Spark would use for the location without Penstock, or to none")
      }
      val withoutOurs = new Configuration(conf)
      withoutOurs.set(ClassKey, named)
      CheckpointFileManager.create(path, withoutOurs)
    }

  private def isLocalByDefault(conf: Configuration): Boolean =
    conf.get("fs.defaultFS", "file:///").startsWith("file:")
}

/**
 * A location on a local disk. Hadoop's local file system starts a process (`readlink`) for every
 * rename, which is most of the time of a small write; java.nio makes the same system calls itself.
 */
private final class LocalCheckpoint(path: Path, conf: Configuration)
    extends FileContextBasedCheckpointFileManager(path, conf) {

  override def createTempFile(file: Path): FSDataOutputStream =
    new FSDataOutputStream(new BufferedOutputStream(Files.newOutputStream(nio(file))), null)

  override def renameTempFile(from: Path, to: Path, overwriteIfPossible: Boolean): Unit = {
    // Hadoop's local file system keeps a checksum beside each file that it wrote. One of other bytes
    // makes a file unreadable, for Spark alone too; without one a file is read as it is.
    Files.deleteIfExists(nio(new Path(to.getParent, s".${to.getName}.crc")))
    if (overwriteIfPossible) {
      Files.move(nio(from), nio(to), StandardCopyOption.ATOMIC_MOVE)
      ()
    } else {
      // A link, unlike a move, fails if the name is taken, in one step.
      try Files.createLink(nio(to), nio(from))
      catch {
        case _: NioFileExists => throw new FileAlreadyExistsException(s"$to already exists")
      }
      Files.delete(nio(from))
    }
  }

  override def exists(file: Path): Boolean = Files.exists(nio(file))

  private def nio(file: Path): NioPath = Paths.get(file.toUri.getPath)
}

/** The store that a location is in, by which slow ones are kept apart from others. */
object StoreName {
  def of(path: Path): String =
    Seq(path.toUri.getScheme, path.toUri.getAuthority).filter(_ != null).mkString("-")
}
