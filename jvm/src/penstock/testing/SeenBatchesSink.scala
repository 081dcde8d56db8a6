// Scala because: it implements Spark's Sink, whose class name is in the settings of tests.
package penstock.testing

import java.nio.file.{Files, Path => LocalPath}

import org.apache.spark.sql.{DataFrame, SQLContext}
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.StreamSinkProvider
import org.apache.spark.sql.streaming.OutputMode

/**
 * A sink that does nothing about a batch whose id it has seen, as Delta's does: `path` is a local
 * folder, and each batch a file of JSON lines there, named by its id.
 */
final class SeenBatchesSink extends StreamSinkProvider {
  override def createSink(
      context: SQLContext,
      options: Map[String, String],
      partitions: Seq[String],
      mode: OutputMode): Sink = new SeenBatches(LocalPath.of(options("path")))
}

private final class SeenBatches(folder: LocalPath) extends Sink {
  override def addBatch(batch: Long, rows: DataFrame): Unit = {
    val file = Files.createDirectories(folder).resolve(batch.toString)
    if (!Files.exists(file)) {
      // Nothing but this may be done with the rows of a batch.
      Files.writeString(file, rows.collect().map(_.json + "\n").mkString)
      ()
    }
  }
}
