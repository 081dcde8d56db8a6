// Scala because: source and sink plan tasks by it, and its schema is an Arrow object of Java.
package penstock.wire

import org.apache.arrow.vector.types.pojo.Schema

/** A stream as the server describes it. */
final case class StreamInfo(
    name: String,
    schema: Schema,
    substreams: Int,
    key: Seq[String],
    earliest: Long,
    latest: Long) {

  /** The stream as someone sees it who knows only its first columns. */
  def first(columns: Int): StreamInfo =
    copy(schema = new Schema(schema.getFields.subList(0, columns)))
}
