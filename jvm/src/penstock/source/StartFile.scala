// Scala because: the source writes it on the stream thread, through Spark's file manager.
package penstock.source

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/**
 * Where a query began to read a source, kept in the checkpoint (`sources/N/0`).
 *
 * `offsets/0` holds the end of the first batch only. Without this file a restart would work out
 * `latest` or a time anew, and batch 0 would have other rows the second time.
 */
private[source] object StartFile {
  def readOrWrite(checkpointLocation: String)(resolve: => Position): Position = {
    val folder = new Path(checkpointLocation)
    val file = new Path(folder, "0")
    val conf = SparkSession.active.sessionState.newHadoopConf()
    val files = CheckpointFileManager.create(folder, conf)
    if (files.exists(file)) {
      val in = files.open(file)
      try Position.parse(new String(in.readAllBytes(), UTF_8))
      finally in.close()
    } else {
      val position = resolve
      files.mkdirs(folder)
      val out = files.createAtomic(file, overwriteIfPossible = false)
      try {
        out.write(position.json().getBytes(UTF_8))
        out.close()
      } catch {
        case e: Throwable =>
          out.cancel()
          throw e
      }
      position
    }
  }
}
