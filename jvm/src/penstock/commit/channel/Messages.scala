// Scala because: executors send these to the driver through Spark's plug-in channel, per piece
// of state.
package penstock.commit.channel

import penstock.commit.{PieceDurable, PieceWritten}
import penstock.prefetch.PrefetchCounts
import penstock.wire.{FileEntry, MachineKind, Snapshot}

/** What a writer of state tells the driver. Every message may be sent twice. */
sealed trait Message extends Serializable {
  def run: String
}

/** How far is this run? */
final case class HowFar(run: String) extends Message

/** Not to be answered at once, but when the answer to the question is another than the known one. */
final case class WhenOther(question: Message, known: Answer) extends Serializable

/** Ack 1: the piece is complete on its writer. */
final case class Wrote(run: String, event: PieceWritten) extends Message

/** A piece that is durable: in the log under these entries, else in the location. */
final case class Durable(event: PieceDurable, entries: Seq[FileEntry], stepsNs: Map[String, Long])

/** Ack 2. */
final case class MadeDurable(run: String, pieces: Seq[Durable]) extends Message

/** How long steps of a commit took. */
final case class Took(run: String, stepsNs: Map[String, Long]) extends Message

/** What the caches of this writer's stores counted since it last told. */
final case class Prefetched(run: String, counts: Seq[PrefetchCounts]) extends Message

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

/** A server has refused this token: which one is there instead? Answered with it, if there is one. */
final case class TokenRefused(token: String) extends Serializable

/**
 * The machine of an executor, told when it starts, and again when its Python workers were tried out.
 *
 * @param workers the version of their Python, or why they cannot run pipelines; None before a try
 */
final case class MachineIs(
    executor: String,
    kind: MachineKind,
    workers: Option[Either[String, String]])
    extends Serializable
