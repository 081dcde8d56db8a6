// Scala because: recovery writes the files of a batch on Spark's stream thread, before Spark
// reads them.
package penstock.checkpoint

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import penstock.Failpoint
import penstock.checkpoint.location.WholeFile
import penstock.client.Gateway
import penstock.wire.{FileEntry, MarkedFiles}

/**
 * A marked batch that the location does not have: its files come from the log. State is what the
 * marker names, whatever an attempt that never committed has left under the same name; offsets and
 * commits that differ are another query's.
 */
private[checkpoint] final class MarkedBatch(
    root: Path,
    files: CheckpointFileManager,
    gateway: Gateway,
    query: String,
    marker: MarkedFiles) {

  private val offsets = s"offsets/${marker.batch}"

  /** Log and location together have the batch. */
  def canBeWritten: Boolean =
    marker.offsets.isDefined || marker.files.exists(_.path == offsets) ||
      files.exists(new Path(root, offsets))

  def write(): Unit = {
    val (first, rest) = marker.files.partition(_.path == offsets)
    marker.offsets.foreach(bytes => WholeFile.create(files, at(offsets), bytes))
    first.foreach(file => WholeFile.create(files, at(file.path), bytesOf(file)))
    rest.foreach(file => WholeFile.write(files, at(file.path), bytesOf(file), overwrite = true))
    Failpoint.reach("in_recovery", query, marker.batch)
    WholeFile.create(files, at(s"commits/${marker.batch}"), marker.commit.get)
  }

  private def bytesOf(file: FileEntry): Array[Byte] = gateway.queries.readFile(query, file.entry)

  private def at(path: String): Path = {
    val file = new Path(root, path)
    files.mkdirs(file.getParent)
    file
  }
}
