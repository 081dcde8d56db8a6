// Scala because: it answers Spark's file sink, which asks its file manager whether a batch is
// there.
package penstock.checkpoint

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.penstock.RunningQuery

import penstock.checkpoint.location.WholeFile
import penstock.query.QueryRuns
import penstock.wire.Json

/**
 * The log of a file sink, as the stream thread of its query sees it.
 *
 * Spark's file sink skips a batch that its log has. When the query was killed before the batch was
 * committed, the batch is run again, and is skipped: its state is what the killed run has left. With
 * checkpoint format 2 Spark has the ids of that state from computing the batch, and without them
 * stops for good. So a query with such state does not see the entry. The entry stays as it is all
 * the same: readers have seen the files it names, and a deterministic query makes the same rows
 * again. The files of the second run are deleted.
 */
private[checkpoint] object SinkLog {
  private val Folder = "_spark_metadata"
  private val Compact = ".compact"

  /** Whether the file is the entry of a batch that must be computed again, for its own query. */
  def isRunAgain(file: Path): Boolean =
    Option(file.getParent).exists(_.getName == Folder) && {
      for {
        batch <- batchOf(file)
        (query, _) <- RunningQuery.streamThread
        current <- RunningQuery.batchOfThisThread if batch >= current
        run <- QueryRuns.here.ofQuery(query) if batch <= run.highest
        own <- RunningQuery.sinkLogOf(query)
      } yield own.toUri.getPath == file.getParent.toUri.getPath &&
        RunningQuery.keepsStateIds(query)
    }.contains(true)

  /** The entry that a killed run has left of a batch that must be computed again. */
  def firstEntry(files: CheckpointFileManager, file: Path): Option[Path] =
    if (!isRunAgain(file)) None
    else batchOf(file).flatMap(batch => names(file.getParent, batch).find(files.exists))

  /** The paths that an entry names, as they are written there. */
  def pathsIn(entry: Array[Byte]): Set[String] =
    new String(entry, UTF_8).linesIterator.drop(1).map(Json.readTree(_).path("path").asText()).toSet

  /** The entries that an entry may repeat: it repeats those before it from the last compact one. */
  def repeatedBy(files: CheckpointFileManager, entry: Path): Seq[Path] =
    if (!isCompact(entry)) Nil
    else {
      val before = for {
        status <- files.list(entry.getParent).toSeq
        batch <- batchOf(status.getPath) if batchOf(entry).exists(batch < _)
      } yield (batch, status.getPath)
      val from = before.collect { case (batch, path) if isCompact(path) => batch }.maxOption
      before.collect { case (batch, path) if from.forall(batch >= _) => path }
    }

  private def batchOf(file: Path): Option[Long] = file.getName.stripSuffix(Compact).toLongOption

  private def isCompact(file: Path): Boolean = file.getName.endsWith(Compact)

  private def names(folder: Path, batch: Long): Seq[Path] =
    Seq(batch.toString, s"$batch$Compact").map(new Path(folder, _))
}

/** The entry of a batch that was run again: the first one stays, and the files of this one go. */
private[checkpoint] final class SecondEntry(
    files: CheckpointFileManager,
    first: Path,
    file: Path,
    conf: Configuration)
    extends HeldLogFile
    with Logging {

  override protected def closed(bytes: Array[Byte]): Unit = {
    val known = (first +: SinkLog.repeatedBy(files, file)).flatMap(WholeFile.read(files, _))
    (SinkLog.pathsIn(bytes) -- known.flatMap(SinkLog.pathsIn)).foreach(delete)
  }

  /** One that stays is named by no entry, as what a failed task leaves. */
  private def delete(path: String): Unit = {
    val written = SparkPath.fromUrlString(path).toPath
    try { written.getFileSystem(conf).delete(written, false); () }
    catch {
      case e: IOException =>
        logWarning(s"$written, which repeats rows of $first, cannot be deleted; delete it if " +
          "anyone reads the folder without its log", e)
    }
  }
}
