// Scala because: the source asks with it, and is answered, before every batch on the stream
// thread.
package penstock.wire

/**
 * How far a source may read, how far it could, and how many substreams there are; all rows of the
 * batch, if the server has sent them along.
 */
final case class Admission(end: Long, latest: Long, substreams: Int, rows: Option[InlineRows] = None)

/** The rows of a small batch, as Arrow by substream; a substream that is not here has none. */
final case class InlineRows(pages: Map[Int, Array[Byte]])

/** The rows that a source wants with an answer: the first columns, of a batch so small. */
final case class InlineRequest(bytesMax: Long, columns: Int)

/**
 * One question to admission: what a source has, how much a batch may carry, how long to wait.
 *
 * @param source the number of the source among those of the query that read this stream, from 0
 */
final case class AdmissionRequest(
    query: Option[String],
    instance: Option[Long],
    stream: String,
    source: Int,
    after: Long,
    rowsMax: Option[Long],
    bytesMax: Option[Long],
    until: Option[Long],
    others: Seq[(String, Long)],
    waitMs: Long,
    inline: InlineRequest)
