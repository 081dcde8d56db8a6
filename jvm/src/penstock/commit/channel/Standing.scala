// Scala because: the driver answers executors with these, through Spark's plug-in channel, per
// question.
package penstock.commit.channel

import penstock.commit.Progress
import penstock.wire.{FileEntry, LogLimits, Snapshot}

/** The driver's answer: how far the run is, or that it does not release anything. */
sealed trait Answer extends Serializable

case object NotReleasing extends Answer

/**
 * @param asked the answer to `WhereIs` and `IsHeld`
 * @param keepsSnapshots whether snapshots of this run are to be in the log
 * @param snapshot the answer to `SnapshotDue`: the newest one that the log has
 * @param limits what the log takes of this run in one entry and one request
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
    snapshot: Option[Snapshot],
    limits: LogLimits)
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

  /** Its writer has put it into the checkpoint location; its batch is not committed yet. */
  case object InLocation extends Whereabouts

  /** The log has it, under these entries; the checkpoint location may not. */
  final case class InLog(files: Seq[FileEntry]) extends Whereabouts

  /** Its writer is gone, and nobody else has it. */
  case object Lost extends Whereabouts
}
