// Scala because: the release queue puts files of every batch into the location through Spark's
// file manager.
package penstock.checkpoint

import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, Executor}

import scala.util.Try

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import penstock.{BadCall, Clock}
import penstock.checkpoint.location.{Prepared, WholeFile}
import penstock.commit.driver.{Named, PlacedFiles, Store}
import penstock.query.TaskLog
import penstock.wire.FileEntry

/**
 * Where a run's checkpoint becomes durable: in the location; or, for a query that writes to the
 * log, in the log, from where each marked batch is copied to the location.
 */
private[checkpoint] final class CheckpointStore(
    root: Path,
    files: CheckpointFileManager,
    log: Option[TaskLog],
    committed: Long,
    preparers: Executor,
    clock: Clock)
    extends Store {
  import CheckpointStore._

  private val offsets = new ConcurrentHashMap[Long, Offsets]()
  private val marked = new ConcurrentHashMap[Long, (Seq[FileEntry], Array[Byte])]()

  /** The last batch that the location has with all that belongs to it. */
  @volatile private var copied = committed
  private val prepared = new ConcurrentHashMap[String, CompletableFuture[Option[Prepared]]]()
  @volatile private var lastPutNs = clock.nanos

  override def name: String = s"the checkpoint location $root"

  override def putOffsets(batch: Long, bytes: Array[Byte]): Unit = log match {
    case Some(tasks) =>
      val entry = tasks.put(batch, Seq(s"offsets/$batch" -> bytes)).head
      offsets.put(batch, Offsets(bytes, Some(entry)))
      ()
    case None =>
      create(s"offsets/$batch", bytes)
      refuseIfOutrun(batch)
  }

  /**
   * A run that stood still may have been outrun by another on the same location so far that the
   * other has deleted the file this one would have collided with. Only then is there need to look.
   */
  private def refuseIfOutrun(batch: Long): Unit = {
    val now = clock.nanos
    if (now - lastPutNs > StoodStillNs) {
      val latest = files.list(new Path(root, "offsets")).flatMap(_.getPath.getName.toLongOption).max
      if (latest > batch) {
        throw new BadCall(
          "two_queries",
          s"$root has offsets of batch $latest while this run is at batch $batch: two queries " +
            "use one checkpoint location. Stop one of them, and give it a location of its own")
      }
    }
    lastPutNs = now
  }

  override def putMarker(batch: Long, commit: Array[Byte], named: Named): Unit = {
    named.offsets.filter(_ => !offsets.containsKey(batch)).foreach { bytes =>
      if (bytes.length > OffsetsInMarkerBytesMax) putOffsets(batch, bytes)
      else offsets.put(batch, Offsets(bytes, None))
    }
    // Offsets that were durable before this run began are in the location already.
    val ofBatch = Option(offsets.get(batch))
    val files = ofBatch.flatMap(_.entry).toSeq ++ named.files
    val inMarker = ofBatch.filter(_.entry.isEmpty).map(_.bytes)
    log.get.mark(batch, commit, files, copied, named.snapshots, inMarker)
    marked.put(batch, (named.files, commit))
    // The location takes these in order, and may be slow: only the last step is left for then.
    ofBatch.foreach(file => prepare(s"offsets/$batch", file.bytes))
    prepare(s"commits/$batch", commit)
  }

  override def putCommit(batch: Long, bytes: Array[Byte]): Unit = create(s"commits/$batch", bytes)

  override def copy(batch: Long, placed: PlacedFiles): Unit = {
    val (pieces, commit) = marked.get(batch)
    Option(offsets.get(batch)).foreach(file => enter(s"offsets/$batch", file.bytes))
    placed.await(pieces.map(_.path), PlacedWithinMs)
    // What its writer does not place, because it is gone or slow, comes from the log.
    pieces.filterNot(p => placed.has(p.path)).foreach { p =>
      WholeFile.write(files, new Path(root, p.path), log.get.read(p), overwrite = true)
    }
    enter(s"commits/$batch", commit)
    copied = math.max(copied, batch)
  }

  override def forget(batch: Long): Unit = {
    offsets.remove(batch)
    marked.remove(batch)
    log.foreach(_.forget(batch))
  }

  override def delete(path: String): Unit = files.delete(new Path(root, path))

  private def prepare(path: String, bytes: Array[Byte]): Unit = {
    prepared.put(
      path,
      CompletableFuture.supplyAsync(
        () => WholeFile.prepare(files, new Path(root, path), bytes),
        preparers))
    ()
  }

  /** What could not be prepared is written now. */
  private def enter(path: String, bytes: Array[Byte]): Unit =
    Option(prepared.remove(path)).flatMap(file => Try(file.get()).toOption.flatten) match {
      case Some(file) => named(file.enter())
      case None => create(path, bytes)
    }

  private def create(path: String, bytes: Array[Byte]): Unit =
    named(WholeFile.create(files, new Path(root, path), bytes))

  private def named(put: => Unit): Unit = log match {
    case Some(tasks) => ConflictingRun.named(tasks)(put)
    case None => put
  }
}

private object CheckpointStore {

  /** `offsets/N`; without an entry they go with the marker. */
  final case class Offsets(bytes: Array[Byte], entry: Option[FileEntry])

  /** Markers are small, and larger offsets, of thousands of partitions, an entry of their own. */
  val OffsetsInMarkerBytesMax: Int = 64 << 10

  /** Spark keeps a hundred batches, which no other run gets through in this time. */
  val StoodStillNs: Long = 2L * 1000 * 1000 * 1000

  /** How long the writer of a piece has the first try at copying it to the location. */
  val PlacedWithinMs: Long = 10L * 1000
}
