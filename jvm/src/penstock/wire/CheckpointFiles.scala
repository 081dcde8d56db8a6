// Scala because: executors send these to the driver for every file of state in the log.
package penstock.wire

/**
 * Where in the log a checkpoint file is. The path is relative to the checkpoint's root.
 *
 * @param start the start of the log that gave the place before its sync; none where it is durable
 */
final case class FileEntry(path: String, entry: Long, start: Option[Long] = None)

/** A file of a snapshot in the log: the entries of its parts, in order, and what they come to. */
final case class SnapshotFile(path: String, entries: Seq[Long], bytes: Long, crc32: Long)

/**
 * A snapshot of one store that is in the log.
 *
 * @param piece the piece of its batch that it is the state of
 * @param base the last entry of the snapshot whose files it has taken over, 0 for none
 */
final case class Snapshot(
    folder: String,
    batch: Long,
    piece: String,
    base: Long,
    files: Seq[SnapshotFile]) {
  def last: Long = files.flatMap(_.entries).maxOption.getOrElse(0L)
}
