// Scala because: the driver's release queue decides on these for every piece of state of every
// batch.
package penstock.commit

/** What the release of a query is told; see `penstock.commit.events`, whose twin this is. */
sealed trait Event

final case class OffsetsWritten(batch: Long) extends Event
final case class PieceWritten(batch: Long, piece: String, writer: String, generation: Long)
    extends Event
final case class PieceDurable(batch: Long, piece: String, writer: String, generation: Long)
    extends Event
final case class CommitWritten(batch: Long, required: Set[String]) extends Event
final case class DeleteAsked(path: String) extends Event
final case class WriterLost(writer: String) extends Event
final case class Done(effect: Effect) extends Event
final case class Failed(effect: Effect, reason: String) extends Event

/** What the release of a query asks to be done. */
sealed trait Effect

final case class PutOffsets(batch: Long) extends Effect
final case class PutMarker(batch: Long) extends Effect
final case class PutCommit(batch: Long) extends Effect
final case class CopyBatch(batch: Long) extends Effect
final case class Delete(path: String) extends Effect
final case class Stop(reason: String) extends Effect
