// Scala because: every task appends its rows over these routes, from the JVM that has computed
// them.
package penstock.client

import java.util.Base64

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.arrow.vector.ipc.message.MessageSerializer
import org.apache.arrow.vector.types.pojo.Schema

import penstock.wire.{EntryPlaces, Json, Stamp, StreamInfo}

/** The routes about streams and their rows. */
final class StreamRoutes private[client] (gateway: Gateway) {

  /** The stream as a query sees it that reads it, or as anyone does. */
  def describe(stream: String, reader: Option[String] = None): StreamInfo =
    info(gateway.getJson(s"/streams/$stream" + reader.fold("")(query => s"?query=$query")))

  /** Creates the stream, or checks that the one that is there has the same schema. */
  def ensure(
      stream: String,
      schema: Schema,
      substreams: Option[Int],
      key: Seq[String]): StreamInfo = {
    val body = Json.createObjectNode()
    body.put("schema", Base64.getEncoder.encodeToString(schema.serializeAsMessage()))
    substreams.foreach(n => body.put("substreams", n))
    if (key.nonEmpty) {
      val columns = body.putArray("key")
      key.foreach(column => columns.add(column))
    }
    info(gateway.putJson(s"/streams/$stream", body))
  }

  /** The position `earliest`, `latest`, or before the first commit at or after a time. */
  def position(stream: String, query: String): Long =
    gateway.getJson(s"/streams/$stream/position?$query").path("position").asLong()

  /**
   * Appends the batches of an Arrow stream as pending entries, and checkpoint files of the same
   * batch along with them; the LSNs of both, in order. `isEarly`: the log may answer before its sync.
   */
  def appendEntries(
      stream: String,
      stamp: Stamp,
      substreams: Seq[Int],
      arrow: Array[Byte],
      files: Seq[(String, Array[Byte])],
      isEarly: Boolean): EntryPlaces = {
    val stamped = s"query=${stamp.query}&instance=${stamp.instance}&batch=${stamp.batch}" +
      s"&partition=${stamp.partition}&attempt=${stamp.attempt}"
    val named = if (files.isEmpty) "" else "&" + FileParameters.of(files)
    val early = if (isEarly) "&early=1" else ""
    val answer = gateway.postArrow(
      s"/streams/$stream/entries?$stamped&substreams=${substreams.mkString(",")}$named$early",
      FileParameters.body(arrow, files))
    StreamRoutes.placesIn(answer)
  }

  private def info(node: JsonNode): StreamInfo = StreamInfo(
    node.path("name").asText(),
    schemaOf(Base64.getDecoder.decode(node.path("schema").asText())),
    node.path("substreams").asInt(),
    node.path("key").elements().asScala.map(_.asText()).toSeq,
    node.path("earliest").asLong(),
    node.path("latest").asLong())

  private def schemaOf(message: Array[Byte]): Schema = MessageSerializer.deserializeSchema(
    new org.apache.arrow.vector.ipc.ReadChannel(
      java.nio.channels.Channels.newChannel(new java.io.ByteArrayInputStream(message))))
}

private[client] object StreamRoutes {

  /** The answer to an append of entries. */
  def placesIn(answer: JsonNode): EntryPlaces = EntryPlaces(
    numbers(answer, "entries"),
    numbers(answer, "files"),
    Option(answer.get("start")).filterNot(_.isNull).map(_.asLong()))

  private def numbers(answer: JsonNode, field: String): Seq[Long] =
    answer.path(field).elements().asScala.map(_.asLong()).toSeq
}
