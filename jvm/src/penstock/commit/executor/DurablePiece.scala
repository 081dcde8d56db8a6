// Scala because: an executor tells the driver of every piece of state that has become durable.
package penstock.commit.executor

import penstock.commit.PieceDurable
import penstock.commit.channel.Durable
import penstock.commit.driver.ReleaseQueues
import penstock.wire.FileEntry

/** A piece of this JVM that is durable, as the driver is told of it. */
private[executor] object DurablePiece {
  def of(piece: HeldPiece, entries: Seq[FileEntry]): Durable = Durable(
    PieceDurable(piece.what.batch, piece.what.piece, ReleaseQueues.writer, piece.generation),
    entries,
    piece.steps.toMap)
}
