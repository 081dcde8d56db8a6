// Scala because: it runs on Spark's stream thread, and writes through Hadoop's file systems.
package penstock.checkpoint

import java.io.FileNotFoundException
import java.util.zip.CRC32

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import penstock.Damaged
import penstock.checkpoint.location.WholeFile
import penstock.client.Gateway
import penstock.wire.{LoggedStore, Snapshot, SnapshotFile}

/** State that is in the log: what the location has lost of it is written there again. */
private[checkpoint] final class LoggedState(
    root: Path,
    files: CheckpointFileManager,
    gateway: Gateway,
    query: String,
    conf: Configuration)
    extends Logging {

  /**
   * Brings every store that the log has snapshots of to where Spark can load the last marked batch:
   * the tables, then the snapshot that names them, then the change logs after it. With a location
   * that has them all this is one listing of it. Returns the snapshots, for later ones to build on.
   */
  def restore(): Seq[Snapshot] = {
    val stores = gateway.queries.state(query)
    if (stores.nonEmpty) {
      val located = listed()
      val written = stores.map(restore(_, located)).sum
      if (written > 0) {
        logWarning(s"the checkpoint at $root lacked $written files of the state of query $query; " +
          "they were written from the log")
      }
    }
    stores.filter(_.snapshot.nonEmpty).map { store =>
      Snapshot(store.folder, store.needsFrom - 1, "", 0, store.snapshot)
    }
  }

  private def restore(store: LoggedStore, located: Map[String, Long]): Int = {
    val (own, tables) = store.snapshot.partition(_.path.endsWith(".zip"))
    val lostTables = tables.filterNot(file => located.get(file.path).contains(file.bytes))
    val lostOwn = own.filterNot(file => located.contains(file.path))
    val lostChanges = store.changes.filterNot(file => located.contains(file.path))
    lostTables.foreach(write)
    lostOwn.foreach { file =>
      // A checksum that is left may be of other bytes: packing the same files again gives others.
      if (located.contains(s"${file.path}.crc")) files.delete(new Path(root, s"${file.path}.crc"))
      write(file)
    }
    lostChanges.foreach { file =>
      val path = at(file.path)
      WholeFile.create(files, path, gateway.queries.readFile(query, file.entry))
    }
    lostTables.size + lostOwn.size + lostChanges.size
  }

  /** Part by part, so that no more of a file than that is in memory. */
  private def write(file: SnapshotFile): Unit = {
    val sum = new CRC32
    var bytes = 0L
    val out = files.createAtomic(at(file.path), overwriteIfPossible = true)
    try {
      file.entries.foreach { entry =>
        val part = gateway.queries.readFile(query, entry)
        sum.update(part)
        bytes += part.length
        out.write(part)
      }
      if (bytes != file.bytes || sum.getValue != file.crc32) {
        throw new Damaged(
          "damaged",
          s"${file.path} of query $query is damaged in the log: its parts have $bytes bytes with " +
            s"the checksum ${sum.getValue}, and it was written with ${file.bytes} and " +
            s"${file.crc32}; restore the log or the checkpoint location from a backup")
      }
      out.close()
    } catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
  }

  private def at(path: String): Path = {
    val file = new Path(root, path)
    files.mkdirs(file.getParent)
    file
  }

  /** Every file below `state`, with its size, by its path from the root. */
  private def listed(): Map[String, Long] = {
    val bytesByPath = mutable.Map.empty[String, Long]
    val above = root.toUri.getPath.stripSuffix("/") + "/"
    try {
      val all = root.getFileSystem(conf).listFiles(new Path(root, "state"), true)
      while (all.hasNext) {
        val file = all.next()
        bytesByPath(file.getPath.toUri.getPath.stripPrefix(above)) = file.getLen
      }
    } catch { case _: FileNotFoundException => }
    bytesByPath.toMap
  }
}
