// Scala because: recovery on the stream thread reads these before Spark reads its checkpoint.
package penstock.wire

/** The last marker of a query, as its task log has it. */
final case class LastMarker(batch: Long, lsn: Long, commit: Option[Array[Byte]])

/** The answer to a take-over: this run's instance, and where the one before it got to. */
final case class TakeOver(instance: Long, last: Option[LastMarker], limits: LogLimits)

/**
 * A marked batch: its checkpoint files in the log, and the bytes of `commits/N`; those of
 * `offsets/N`, if the marker has them in it.
 */
final case class MarkedFiles(
    batch: Long,
    lsn: Long,
    commit: Option[Array[Byte]],
    files: Seq[FileEntry],
    offsets: Option[Array[Byte]])

/**
 * What the log has of a checkpoint past some batch: the marked batches, and the recorded offsets,
 * as batch and entry, of the first one that is not marked.
 */
final case class LoggedCheckpoint(markers: Seq[MarkedFiles], offsets: Option[(Long, Long)])

/** A state store in the log: its newest snapshot, if any, and the change logs after it. */
final case class LoggedStore(
    folder: String,
    needsFrom: Long,
    snapshot: Seq[SnapshotFile],
    changes: Seq[FileEntry])
