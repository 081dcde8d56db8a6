// Scala because: executors append state files, and the stream thread marks batches, over these
// routes.
package penstock.client

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import penstock.wire._

/** The routes about queries: taking over, admission, marking. */
final class QueryRoutes private[client] (gateway: Gateway) {

  def takeOver(query: String, run: String, name: Option[String]): TakeOver = {
    val body = Json.createObjectNode()
    body.put("run", run)
    name.foreach(n => body.put("name", n))
    val answer = gateway.postJson(s"/queries/$query/instances", body)
    val last = Option(answer.get("marker")).filterNot(_.isNull).map { marker =>
      LastMarker(marker.path("batch").asLong(), marker.path("lsn").asLong(), commitOf(marker))
    }
    val limits = Option(answer.get("limits")).map { named =>
      LogLimits(
        named.path("entry_bytes_max").asLong(),
        named.path("request_bytes_max").asLong(),
        named.path("request_files_max").asInt())
    }
    TakeOver(answer.path("instance").asLong(), last, limits.getOrElse(LogLimits.Unnamed))
  }

  /** The instance of a query that may mark now. */
  def instanceOf(query: String): Long =
    gateway.getJson(s"/queries/$query").path("instance").asLong()

  def admit(ask: AdmissionRequest): Admission = {
    val body = Json.createObjectNode()
    ask.query.foreach(q => body.put("query", q))
    ask.instance.foreach(i => body.put("instance", i))
    body.put("stream", ask.stream).put("after", ask.after)
    if (ask.source > 0) body.put("source", ask.source)
    ask.rowsMax.foreach(n => body.put("rows_max", n))
    ask.bytesMax.foreach(n => body.put("bytes_max", n))
    ask.until.foreach(n => body.put("until", n))
    val others = body.putArray("others")
    ask.others.foreach { case (stream, after) =>
      others.addObject().put("stream", stream).put("after", after)
    }
    body.put("wait_ms", ask.waitMs)
    AdmissionRoutes.fillInline(body, ask.inline)
    AdmissionRoutes.admissionOf(gateway.postJson("/admission", body))
  }

  /** Makes a batch visible. Sending the same marker again is answered as the first time. */
  def mark(
      query: String,
      instance: Long,
      batch: Long,
      writes: Seq[Write],
      commit: Option[Array[Byte]],
      positions: Map[String, Long],
      mode: String,
      files: Seq[FileEntry] = Nil,
      copied: Option[Long] = None,
      snapshots: Option[Seq[Snapshot]] = None,
      offsets: Option[Array[Byte]] = None): Long = {
    val body = Json.createObjectNode()
    body.put("instance", instance).put("batch", batch).put("mode", mode)
    copied.foreach(last => body.put("copied", last))
    commit.foreach(bytes => body.put("commit", Base64.getEncoder.encodeToString(bytes)))
    offsets.foreach(bytes => body.put("offsets", Base64.getEncoder.encodeToString(bytes)))
    val positionByStream = body.putObject("positions")
    positions.foreach { case (stream, position) => positionByStream.put(stream, position) }
    val list = body.putArray("writes")
    writes.foreach { write =>
      val entries = list
        .addObject()
        .put("stream", write.stream)
        .put("partition", write.partition)
        .put("attempt", write.attempt)
        .putArray("entries")
      write.entries.foreach(lsn => entries.add(lsn))
    }
    val named = body.putArray("files")
    files.foreach(f => named.addObject().put("path", f.path).put("entry", f.entry))
    val early = writes.flatMap(_.starts) ++ files.flatMap(file => file.start.map(_ -> file.entry))
    if (early.nonEmpty) {
      val starts = body.putArray("starts")
      Starts.last(early).foreach { case (start, last) =>
        starts.addObject().put("start", start).put("last", last)
      }
    }
    snapshots.foreach { kept =>
      val list = body.putArray("snapshots")
      kept.foreach { snapshot =>
        val fields = list.addObject().put("folder", snapshot.folder).put("batch", snapshot.batch)
        val parts = fields.putArray("files")
        snapshot.files.foreach { file =>
          val part = parts.addObject().put("path", file.path).put("file_bytes", file.bytes)
          val entries = part.put("crc32", file.crc32).putArray("entries")
          file.entries.foreach(lsn => entries.add(lsn))
        }
      }
    }
    gateway.postJson(s"/queries/$query/markers", body).path("lsn").asLong()
  }

  /** Appends checkpoint files of a batch in one step; their entries, in order, which are durable. */
  def putFiles(
      query: String,
      instance: Long,
      batch: Long,
      files: Seq[(String, Array[Byte])]): Seq[Long] =
    appendFiles(query, instance, batch, files, isEarly = false).entries

  /** The same; `isEarly`: the log may answer before its sync. */
  def appendFiles(
      query: String,
      instance: Long,
      batch: Long,
      files: Seq[(String, Array[Byte])],
      isEarly: Boolean): EntryPlaces = {
    val early = if (isEarly) "&early=1" else ""
    val named = FileParameters.of(files)
    StreamRoutes.placesIn(
      gateway.postBytes(
        s"/queries/$query/files?instance=$instance&batch=$batch&$named$early",
        FileParameters.body(Array.emptyByteArray, files)))
  }

  def readFile(query: String, entry: Long): Array[Byte] =
    gateway.getBytes(s"/queries/$query/files/$entry")

  /** What the log has of the query's checkpoint after `batch`; all of it if that is below 0. */
  def checkpoint(query: String, batch: Long): LoggedCheckpoint = {
    val after = if (batch < 0) "" else s"?after_batch=$batch"
    val answer = gateway.getJson(s"/queries/$query/checkpoint$after")
    val markers = answer.path("markers").elements().asScala.map { marker =>
      val files = marker.path("files").elements().asScala.map { file =>
        FileEntry(file.path("path").asText(), file.path("entry").asLong())
      }
      MarkedFiles(
        marker.path("batch").asLong(),
        marker.path("lsn").asLong(),
        commitOf(marker),
        files.toSeq,
        bytesIn(marker, "offsets"))
    }.toSeq
    if (answer.path("more").asBoolean()) {
      val rest = checkpoint(query, markers.last.batch)
      rest.copy(markers = markers ++ rest.markers)
    } else {
      val offsets = Option(answer.get("offsets")).filterNot(_.isNull).map { recorded =>
        (recorded.path("batch").asLong(), recorded.path("entry").asLong())
      }
      LoggedCheckpoint(markers, offsets)
    }
  }

  /** What the log has of the query's state; nothing where snapshots are in the location alone. */
  def state(query: String, after: String = ""): Seq[LoggedStore] = {
    val answer = gateway.getJson(s"/queries/$query/state?after=${URLEncoder.encode(after, UTF_8)}")
    val stores = answer.path("stores").elements().asScala.map { store =>
      val snapshot = store.path("snapshot").elements().asScala.map { file =>
        SnapshotFile(
          file.path("path").asText(),
          file.path("entries").elements().asScala.map(_.asLong()).toSeq,
          file.path("file_bytes").asLong(),
          file.path("crc32").asLong())
      }
      val changes = store.path("changes").elements().asScala.map { file =>
        FileEntry(file.path("path").asText(), file.path("entry").asLong())
      }
      LoggedStore(
        store.path("folder").asText(),
        store.path("needs_from").asLong(),
        snapshot.toSeq,
        changes.toSeq)
    }.toSeq
    if (answer.path("more").asBoolean()) stores ++ state(query, stores.last.folder) else stores
  }

  private def commitOf(marker: JsonNode): Option[Array[Byte]] = bytesIn(marker, "commit")

  private def bytesIn(marker: JsonNode, field: String): Option[Array[Byte]] =
    Option(marker.get(field)).filterNot(_.isNull).map(text => Base64.getDecoder.decode(text.asText()))
}
