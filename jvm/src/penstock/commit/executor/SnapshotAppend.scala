// Scala because: an executor appends snapshots table by table, before Spark counts them as
// uploaded.
package penstock.commit.executor

import java.io.{ByteArrayInputStream, InputStream}
import java.util.zip.{CRC32, ZipInputStream}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import penstock.checkpoint.location.{StateFile, WholeFile}
import penstock.commit.channel.{HowFar, NotReleasing, SnapshotAppended, SnapshotDue, Standing}
import penstock.settings.{CommitSettings, Connection}
import penstock.wire.{Json, Snapshot, SnapshotFile}

/**
 * Appends a snapshot that has just entered the location to the log, where the run keeps them there,
 * and tells the driver, before Spark counts it as uploaded: from then on change logs may rest on
 * it, and the marker of the first that does must name it. What fails here, after it was tried for
 * as long as the settings say, leaves the log with the snapshot before; the next one is tried anew.
 */
private[commit] final class SnapshotAppend(
    resources: ExecutorParts,
    run: String,
    zip: Path,
    stateFile: StateFile,
    location: CheckpointFileManager,
    conf: Configuration)
    extends Logging {
  import SnapshotAppend._

  private val settings = new CommitSettings(conf)

  def perform(): Unit =
    if (settings.snapshotsInLog && zip.getName.endsWith(".zip")) {
      try
        resources.toDriver.ask(HowFar(run)) match {
          case now: Standing if now.withLog && now.keepsSnapshots && counts(now) => append()
          case _ =>
        }
      catch {
        case NonFatal(e) =>
          logWarning(s"the snapshot ${stateFile.relative} is not in the log: ${e.getMessage}")
      }
    }

  /** Of several attempts at a batch that is committed, the one whose id is in `commits/N`. */
  private def counts(standing: Standing): Boolean =
    stateFile.piece.contains('/') || standing.committed < stateFile.batch || {
      resources.copier.await(run, settings.retryMs)(_.copied >= stateFile.batch)
      val root = Iterator.iterate(zip.getParent)(_.getParent).drop(stateFile.folder.count(_ == '/') + 1)
      WholeFile.read(location, new Path(root.next(), s"commits/${stateFile.batch}"))
        .exists(new String(_, "UTF-8").contains(stateFile.piece))
    }

  private def append(): Unit =
    resources.toDriver.ask(SnapshotDue(run, stateFile.folder)) match {
      case standing: Standing =>
        val shared = standing.snapshot.toSeq.flatMap(_.files).map(file => file.path -> file).toMap
        val parts = new Parts(standing)
        val own = WholeFile.read(location, zip).get
        tables(own).filterNot(shared.contains).foreach { path =>
          Using.resource(location.open(inFolder(path)))(parts.add(path, _))
        }
        parts.add(stateFile.relative, new ByteArrayInputStream(own))
        val fresh = parts.all()
        val all = tables(own).flatMap(shared.get) ++ fresh
        val base = standing.snapshot.fold(0L)(_.last)
        resources.toDriver.ask(
          SnapshotAppended(run, Snapshot(stateFile.folder, stateFile.batch, stateFile.piece, base, all)))
        ()
      case NotReleasing =>
    }

  private def inFolder(path: String): Path =
    new Path(zip.getParent, path.stripPrefix(stateFile.folder + "/"))

  /** The files beside the zip that it names; they never change. */
  private def tables(own: Array[Byte]): Seq[String] =
    Using.resource(new ZipInputStream(new ByteArrayInputStream(own))) { in =>
      Iterator.continually(in.getNextEntry).takeWhile(_ != null).find(_.getName == "metadata")
      val json = new String(in.readAllBytes(), "UTF-8").linesIterator.drop(1).mkString
      val metadata = Json.readTree(json)
      def names(list: String, name: String, under: String): Seq[String] =
        metadata.path(list).elements().asScala.map(_.path(name).asText()).toSeq
          .map(file => s"${stateFile.folder}/$under/$file")
      names("sstFiles", "dfsSstFileName", "SSTs") ++ names("logFiles", "dfsLogFileName", "logs")
    }

  /** Files on their way to the log, cut into parts; as many parts in one request as it may take. */
  private final class Parts(standing: Standing) {
    private val routes = resources.gateways.to(Connection.of(conf).get).queries
    private val waiting = mutable.Buffer.empty[(String, Array[Byte])]
    private val entries = mutable.LinkedHashMap.empty[String, mutable.Buffer[Long]]
    private val sums = mutable.Map.empty[String, (Long, Long)]
    private val partBytes = math.min(PartBytes, standing.limits.partBytes).toInt
    private val partsMax = math.min(PartsMax, standing.limits.requestFiles)

    def add(path: String, in: InputStream): Unit = {
      val sum = new CRC32
      var bytes = 0L
      var part = in.readNBytes(partBytes)
      entries(path) = mutable.Buffer.empty
      while (part.nonEmpty) {
        sum.update(part)
        bytes += part.length
        if (waiting.size >= partsMax || waiting.map(_._2.length).sum + part.length > partBytes) {
          flush()
        }
        waiting += path -> part
        part = in.readNBytes(partBytes)
      }
      sums(path) = (bytes, sum.getValue)
    }

    def all(): Seq[SnapshotFile] = {
      flush()
      entries.toSeq.map { case (path, parts) =>
        SnapshotFile(path, parts.toSeq, sums(path)._1, sums(path)._2)
      }
    }

    private def flush(): Unit = if (waiting.nonEmpty) {
      routes
        .putFiles(standing.query, standing.instance.get, stateFile.batch, waiting.toSeq)
        .zip(waiting)
        .foreach { case (entry, (path, _)) => entries(path) += entry }
      waiting.clear()
    }
  }
}

private object SnapshotAppend {

  /** Most bytes of one entry, and of one request: what a JVM holds of a snapshot at a time. */
  val PartBytes: Long = 4L << 20

  /** Most parts in one request: their paths are in its first line. */
  val PartsMax = 100
}
