// Scala because: it changes a setting of a query on its stream thread, before Spark reads it.
package penstock.checkpoint

import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.penstock.RunningQuery

import penstock.BadCall
import penstock.checkpoint.location.WholeFile
import penstock.settings.{CommitSettings, Keys}
import penstock.wire.Json

/**
 * The checkpoint format of a query whose sink may skip a batch.
 *
 * A sink that has a batch already, because the query was killed after it had taken it, may do
 * nothing about it when it is run again. With format 2 Spark has the ids of a batch's state from
 * computing it, and fails an assertion at every start from then on. With format 1 state has names
 * that do not change, and what the killed run has left is what the next batch reads. So a new
 * checkpoint is made with format 1, and one that has format 2 is refused unless its user accepts it.
 */
private[checkpoint] object StateFormat extends Logging {
  private val Key = "spark.sql.streaming.stateStore.checkpointFormatVersion"

  /** To be called before Spark settles the format: it takes the session's for a new checkpoint. */
  def settle(
      query: String,
      root: Path,
      committed: Long,
      files: CheckpointFileManager,
      settings: CommitSettings): Unit =
    RunningQuery.skippingSink(query).foreach { sink =>
      val lastCommit = WholeFile.read(files, new Path(root, s"${LogFile.Commits}/$committed"))
      if (lastCommit.exists(hasStateIds)) {
        if (!settings.acceptsFormat2) refuse(root, sink)
        logWarning(s"${facts(root, sink)}; ${Keys.CommitAcceptFormat2} accepts it")
      } else if (committed < 0) {
        logInfo(s"$Key is 1 for the query at $root: its sink $sink may skip a batch that it has")
        RunningQuery.setForThisQuery(Key, "1")
      }
    }

  private def refuse(root: Path, sink: String): Nothing = throw new BadCall(
    "format_2_with_skips",
    s"${facts(root, sink)}. Start the query with a new checkpoint location, which is made with " +
      s"format 1; or set ${Keys.CommitAcceptFormat2}=true to go on with this one at that risk")

  private def facts(root: Path, sink: String): String =
    s"the checkpoint at $root was begun with $Key=2, and the sink $sink may skip a batch that it " +
      "has: if the driver dies when the sink has a batch and Spark has not committed it, Spark " +
      "fails with an assertion at every start from then on"

  private def hasStateIds(commit: Array[Byte]): Boolean = {
    val json = new String(commit, "UTF-8").linesIterator.drop(1).nextOption().getOrElse("{}")
    !Json.readTree(json).path("stateUniqueIds").isEmpty
  }
}
