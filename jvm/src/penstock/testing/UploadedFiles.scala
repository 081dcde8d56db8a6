// Scala because: it implements Spark's CheckpointFileManager, whose class name is in the settings
// of tests.
package penstock.testing

import java.io.ByteArrayOutputStream
import java.util.EnumSet

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{CreateFlag, FileAlreadyExistsException, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.AbstractFileContextBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * A checkpoint file manager for object stores, as Spark's for S3: a file is there once its upload
 * has ended, so that nothing is renamed; and what was not closed was never there.
 */
final class UploadedFiles(path: Path, conf: Configuration)
    extends AbstractFileContextBasedCheckpointFileManager(path, conf) {

  override def createAtomic(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    new CancellableFSDataOutputStream(new ByteArrayOutputStream()) {
      private var isOver = false

      override def close(): Unit = if (!isOver) {
        isOver = true
        if (!overwrite && exists(file)) throw new FileAlreadyExistsException(s"$file is there")
        val out = fc.create(file, EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE))
        try underlyingStream.asInstanceOf[ByteArrayOutputStream].writeTo(out)
        finally out.close()
      }

      override def cancel(): Unit = isOver = true
    }
}
