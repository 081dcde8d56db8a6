package penstock.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.StreamMetadata
import org.apache.spark.sql.penstock.SparkInternals

import penstock.{Connection, Damaged}
import penstock.client.{Gateway, LastMarker}

/**
 * What happens once per run, before Spark reads its logs:
 *
 *   1. Take the query's next instance number. From then on an older run cannot mark.
 *   1. Read the last marker of the task log. After step 1, so that none can follow it.
 *   1. If the checkpoint was written to a moment ago, wait for what an older run that is still
 *      alive may be writing. Nothing would be lost without that, but its file would be in the way
 *      of ours, and both runs would stop.
 *   1. If the marker's batch has no `commits/N`, write it: the batch is visible, so it must not
 *      run again.
 */
private[checkpoint] object Recovery extends Logging {

  /** A run that wrote to the checkpoint within this time may still be alive. */
  private val AliveMs = 3000L

  /** How long a file that an older run has begun may take to appear. */
  private val GraceMs = 300L

  def ensure(root: Path, files: CheckpointFileManager, conf: Configuration): Unit =
    for {
      (query, run) <- SparkInternals.streamThread
      if !QueryRuns.ofCheckpoint(root.toString).exists(_.run == run)
      server <- Connection.of(conf)
      // A thread made by a stream thread inherits its properties, and may start another query.
      metadata <- StreamMetadata.read(new Path(root, "metadata"), conf) if metadata.id == query
    } {
      val gateway = Gateway.to(server)
      val taken = gateway.queries.takeOver(query, run, SparkInternals.nameOf(query))
      letOlderRunFinish(root, files)
      taken.last.foreach(marker => bringUp(root, files, query, marker))
      QueryRuns.started(root.toString, new QueryRun(gateway, query, run, taken.instance))
    }

  private def letOlderRunFinish(root: Path, files: CheckpointFileManager): Unit = {
    val written = Seq(LogFile.Offsets, LogFile.Commits)
      .map(new Path(root, _))
      .filter(files.exists)
      .flatMap(files.list(_))
      .map(_.getModificationTime)
    if (written.exists(_ > System.currentTimeMillis() - AliveMs)) Thread.sleep(GraceMs)
  }

  private def bringUp(
      root: Path,
      files: CheckpointFileManager,
      query: String,
      marker: LastMarker): Unit = {
    val committed = latest(files, new Path(root, LogFile.Commits))
    val started = latest(files, new Path(root, LogFile.Offsets))
    if (marker.batch > committed) {
      val bytes = marker.commit
      if (marker.batch != committed + 1 || marker.batch > started || bytes.isEmpty) {
        throw new Damaged(
          "checkpoint_behind",
          s"query $query has marked batch ${marker.batch} in the log (LSN ${marker.lsn}), but " +
            s"the checkpoint at $root has offsets up to $started and commits up to $committed; " +
            "restore the checkpoint that goes with the log, or start with a new checkpoint " +
            "location and a new output stream")
      }
      logWarning(s"batch ${marker.batch} of query $query is visible but was not in the commit " +
        s"log; writing commits/${marker.batch} from its marker")
      WholeFile.write(
        files,
        new Path(new Path(root, LogFile.Commits), marker.batch.toString),
        bytes.get)
    }
  }

  private def latest(files: CheckpointFileManager, folder: Path): Long =
    if (!files.exists(folder)) -1L
    else files.list(folder).flatMap(_.getPath.getName.toLongOption).maxOption.getOrElse(-1L)
}
