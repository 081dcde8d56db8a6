// Scala because: each task attempt stamps its rows with these and returns them to the driver.
package penstock.wire

/** Who appends a pending entry; only a marker that names it makes the entry visible. */
final case class Stamp(query: String, instance: Long, batch: Long, partition: Int, attempt: Long)

/** What a winning task attempt appended to a stream. Travels from executors to the driver. */
final case class Write(stream: String, partition: Int, attempt: Long, entries: Seq[Long])
