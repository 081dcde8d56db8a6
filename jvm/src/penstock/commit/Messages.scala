package penstock.commit

/** Where in the log a checkpoint file is. The path is relative to the checkpoint's root. */
final case class FileEntry(path: String, entry: Long)

/** What a writer of state tells the driver. Every message may be sent twice. */
sealed trait Message extends Serializable {
  def run: String
}

/** How far is this run? */
final case class HowFar(run: String) extends Message

/** Ack 1: the piece is complete on its writer. */
final case class Wrote(run: String, event: PieceWritten) extends Message

/** A piece that is durable: in the log under these entries, else in the location. */
final case class Durable(event: PieceDurable, entries: Seq[FileEntry], stepsNs: Map[String, Long])

/** Ack 2. */
final case class MadeDurable(run: String, pieces: Seq[Durable]) extends Message

/** How long steps of a commit took. */
final case class Took(run: String, stepsNs: Map[String, Long]) extends Message

/** Files of a committed batch are in the location as well. */
final case class Placed(run: String, batch: Long, paths: Seq[String]) extends Message

/** The piece cannot be made durable; the reason names who must act. `isFenced`: nobody is to. */
final case class GaveUp(run: String, reason: String, isFenced: Boolean = false) extends Message

/** A load misses this piece: is it on its way? */
final case class WhereIs(run: String, batch: Long, piece: String) extends Message

/** Is anything of this batch that was written still on its way? */
final case class IsHeld(run: String, batch: Long) extends Message

/** A snapshot of the store is to be appended to the log: what may it share? */
final case class SnapshotDue(run: String, folder: String) extends Message

/** The snapshot is in the log, for the next marker to name. */
final case class SnapshotAppended(run: String, snapshot: Snapshot) extends Message

/** The driver's answer: how far the run is, or that it does not release anything. */
sealed trait Answer extends Serializable

case object NotReleasing extends Answer
/**
 * @param asked the answer to `WhereIs` and `IsHeld`
 * @param keepsSnapshots whether snapshots of this run are to be in the log
 * @param snapshot the answer to `SnapshotDue`: the newest one that the log has
 */
final case class Standing(
    query: String,
    instance: Option[Long],
    released: Long,
    committed: Long,
    copied: Long,
    stopped: Option[String],
    asked: Whereabouts,
    keepsSnapshots: Boolean,
    snapshot: Option[Snapshot])
    extends Answer
    with Progress {

  /** With a log, state may be appended at once: it is nobody's until a marker names it. */
  def withLog: Boolean = instance.isDefined
}

sealed trait Whereabouts extends Serializable

object Whereabouts {

  /** Not asked for, or nothing is known of it. */
  case object Unknown extends Whereabouts

  /** It will be in the checkpoint location. */
  case object OnItsWay extends Whereabouts

  /** Its writer is gone, and nobody else has it. */
  case object Lost extends Whereabouts
}
