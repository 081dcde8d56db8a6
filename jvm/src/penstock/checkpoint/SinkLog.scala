// Scala because: it answers Spark's file sink, which asks its file manager whether a batch is
// there.
package penstock.checkpoint

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.penstock.RunningQuery

import penstock.query.QueryRuns

/**
 * The log of a file sink, as the stream thread of its query sees it.
 *
 * Spark's file sink skips a batch that its log has. When the query was killed before the batch was
 * committed, the batch is run again, and a skipped one has no state: with checkpoint format 2 Spark
 * then stops for good. So the entry of a batch that is run again is not there for its own query; it
 * is replaced, in one step, when the batch has been computed from the same input.
 */
private[checkpoint] object SinkLog {
  private val Folder = "_spark_metadata"

  def isRunAgain(file: Path): Boolean =
    Option(file.getParent).exists(_.getName == Folder) && {
      for {
        batch <- file.getName.stripSuffix(".compact").toLongOption
        (query, _) <- RunningQuery.streamThread
        current <- RunningQuery.batchOfThisThread if batch >= current
        run <- QueryRuns.ofQuery(query) if batch <= run.highest
        own <- RunningQuery.sinkLogOf(query)
      } yield own.toUri.getPath == file.getParent.toUri.getPath
    }.contains(true)
}
