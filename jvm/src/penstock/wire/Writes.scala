// Scala because: each task attempt stamps its rows with these and returns them to the driver.
package penstock.wire

/** Who appends a pending entry; only a marker that names it makes the entry visible. */
final case class Stamp(query: String, instance: Long, batch: Long, partition: Int, attempt: Long)

/**
 * What a winning task attempt appended to a stream. Travels from executors to the driver.
 *
 * @param starts of each start of the log that answered before its sync, the last place it gave
 */
final case class Write(
    stream: String,
    partition: Int,
    attempt: Long,
    entries: Seq[Long],
    starts: Map[Long, Long] = Map.empty)

/**
 * The places of entries that were appended, in the order they were sent; `files` are those of
 * checkpoint files that came with rows.
 *
 * @param start the start of the log that answered before its sync: until the marker is answered, what
 *   was appended may be lost
 */
final case class EntryPlaces(entries: Seq[Long], files: Seq[Long], start: Option[Long])

object Starts {

  /** Of each start the last of all places it gave. */
  def last(places: Iterable[(Long, Long)]): Map[Long, Long] =
    places.groupMapReduce(_._1)(_._2)(math.max(_, _))
}
