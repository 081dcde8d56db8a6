package penstock.commit

import java.io.{BufferedOutputStream, File, FileNotFoundException}
import java.nio.file.{FileAlreadyExistsException => NioFileExists, Files, Path => NioPath, Paths, StandardCopyOption}
import java.util.{Arrays, UUID}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FSDataOutputStream, Path, UnsupportedFileSystemException}
import org.apache.spark.sql.execution.streaming.checkpointing.{CheckpointFileManager, FileContextBasedCheckpointFileManager, FileSystemBasedCheckpointFileManager}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.{CancellableFSDataOutputStream, RenameHelperMethods}

import penstock.BadCall

/** The files of a checkpoint location, as they are: nothing is held back here. */
private[penstock] object Location {

  /** Spark's own way to the location. */
  def asSpark(path: Path, conf: Configuration): CheckpointFileManager =
    try new FileContextBasedCheckpointFileManager(path, conf)
    catch {
      case _: UnsupportedFileSystemException => new FileSystemBasedCheckpointFileManager(path, conf)
    }

  /** The quickest way to the location. */
  def direct(path: Path, conf: Configuration): CheckpointFileManager = {
    val scheme = path.toUri.getScheme
    val isLocal = scheme == "file" || (scheme == null && isLocalByDefault(conf))
    if (isLocal) new LocalCheckpoint(path, conf) else asSpark(path, conf)
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

/** A file that lies beside its place, whole, and enters it in one step. */
private[penstock] final class Prepared(
    files: RenameHelperMethods with CheckpointFileManager,
    beside: Path,
    file: Path,
    bytes: Array[Byte]) {

  /** As `WholeFile.create`. */
  def enter(): Unit = WholeFile.unlessThere(files, file, bytes) {
    files.renameTempFile(beside, file, overwriteIfPossible = false)
  }
}

/** The store that a location is in, by which slow ones are kept apart from others. */
private[penstock] object StoreName {
  def of(path: Path): String =
    Seq(path.toUri.getScheme, path.toUri.getAuthority).filter(_ != null).mkString("-")
}

/** Files that appear whole or not at all. */
private[penstock] object WholeFile {

  /** Writes a file that must not be there; the same bytes from an earlier try are fine. */
  def create(files: CheckpointFileManager, file: Path, bytes: Array[Byte]): Unit =
    unlessThere(files, file, bytes)(write(files, file, bytes, overwrite = false))

  /** Writes what `create` would, to a name that nobody reads; None where that saves nothing. */
  def prepare(files: CheckpointFileManager, file: Path, bytes: Array[Byte]): Option[Prepared] =
    files match {
      case _: LocalCheckpoint => None
      case renaming: (RenameHelperMethods with CheckpointFileManager) =>
        val beside = new Path(file.getParent, s".${file.getName}.${UUID.randomUUID()}.tmp")
        val out = renaming.createTempFile(beside)
        try out.write(bytes)
        finally out.close()
        Some(new Prepared(renaming, beside, file, bytes))
      case _ => None
    }

  private[commit] def unlessThere(files: CheckpointFileManager, file: Path, bytes: Array[Byte])(
      put: => Unit): Unit =
    try put
    catch {
      case e: FileAlreadyExistsException =>
        if (!read(files, file).exists(Arrays.equals(_, bytes))) {
          throw new BadCall(
            "two_queries",
            s"$file was written by another run (${e.getMessage}): two queries use one checkpoint " +
              "location. Stop one of them, and give it a location of its own")
        }
    }

  def copy(files: CheckpointFileManager, from: File, to: Path): Unit =
    writing(files, to, overwrite = true) { out =>
      Files.copy(from.toPath, out)
      ()
    }

  def read(files: CheckpointFileManager, file: Path): Option[Array[Byte]] =
    try {
      val in = files.open(file)
      try Some(in.readAllBytes())
      finally in.close()
    } catch {
      case _: FileNotFoundException => None
    }

  def write(
      files: CheckpointFileManager,
      file: Path,
      bytes: Array[Byte],
      overwrite: Boolean): Unit = writing(files, file, overwrite)(_.write(bytes))

  private def writing(files: CheckpointFileManager, file: Path, overwrite: Boolean)(
      fill: CancellableFSDataOutputStream => Unit): Unit = {
    val out = files.createAtomic(file, overwrite)
    try {
      fill(out)
      out.close()
    } catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
  }
}
