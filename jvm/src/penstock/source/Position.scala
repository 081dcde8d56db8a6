// Scala because: it extends Spark's Offset class, of which the offset log is made.
package penstock.source

import org.apache.spark.sql.connector.read.streaming.Offset

import penstock.BadCall
import penstock.wire.Json

/** How far a query has read a stream: the LSN of the last commit consumed. */
final case class Position(stream: String, lsn: Long) extends Offset {
  override def json(): String = Json.writeValueAsString(
    Json.createObjectNode().put("stream", stream).put("position", lsn))
}

object Position {
  def parse(text: String): Position = {
    val node = Json.readTree(text)
    if (!node.hasNonNull("stream") || !node.hasNonNull("position")) {
      throw new BadCall(
        "bad_position",
        s"the checkpoint holds $text where a Penstock position is expected; the source of a " +
          "query cannot be changed under its checkpoint")
    }
    Position(node.get("stream").asText(), node.get("position").asLong())
  }
}
