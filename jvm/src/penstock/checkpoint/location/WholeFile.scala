// Scala because: tasks and the driver write whole files through Spark's CheckpointFileManager.
package penstock.checkpoint.location

import java.io.{File, FileNotFoundException}
import java.nio.file.Files
import java.util.{Arrays, UUID}

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.{CancellableFSDataOutputStream, RenameHelperMethods}

import penstock.BadCall

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

  private[location] def unlessThere(files: CheckpointFileManager, file: Path, bytes: Array[Byte])(
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
