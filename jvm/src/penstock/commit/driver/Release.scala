// Scala because: the driver's JVM decides here at every message of every task; release.py is its
// specification.
package penstock.commit.driver

import scala.collection.mutable

import penstock.commit._

/** The newest write of one piece that one writer has announced, and the newest that is durable. */
private final class Written {
  var announced = 0L
  var durable = 0L

  def isDurable: Boolean = durable >= announced
}

/** The writes of each piece of one batch, by writer. Generations count from 1. */
private final class Pieces {
  private val writes = mutable.Map.empty[String, mutable.Map[String, Written]]

  def written(piece: String, writer: String, generation: Long): Unit = {
    val write = at(piece, writer)
    write.announced = math.max(write.announced, generation)
  }

  def madeDurable(piece: String, writer: String, generation: Long): Unit = {
    written(piece, writer, generation)
    val write = at(piece, writer)
    write.durable = math.max(write.durable, generation)
  }

  def isKnown(piece: String): Boolean = writes.contains(piece)

  /** The current write, as writer and generation: durable, while nobody writes the piece anew. */
  def durableWrite(piece: String, lost: String => Boolean): Option[(String, Long)] = {
    val all = writes.get(piece).toSeq.flatten
    if (all.exists { case (writer, write) => !write.isDurable && !lost(writer) }) None
    else all.collect { case (writer, write) if write.isDurable => (writer, write.durable) }.minOption
  }

  /** The piece was written, and all its writers were lost before it was durable. */
  def isLost(piece: String, lost: String => Boolean): Boolean = writes.get(piece).exists {
    _.forall { case (writer, write) => !write.isDurable && lost(writer) }
  }

  /** Some piece is announced, but not durable yet. */
  def isAnyHeld(lost: String => Boolean): Boolean =
    writes.keys.exists(piece => !isLost(piece, lost) && durableWrite(piece, lost).isEmpty)

  def isAnyLost(lost: String => Boolean): Boolean = writes.keys.exists(isLost(_, lost))

  /** Writers that have the piece and have not made it durable, by name. */
  def holders(piece: String, lost: String => Boolean): Seq[String] =
    writes.get(piece).toSeq.flatten.collect {
      case (writer, write) if !write.isDurable && !lost(writer) => writer
    }.sorted

  private def at(piece: String, writer: String): Written =
    writes.getOrElseUpdate(piece, mutable.Map.empty).getOrElseUpdate(writer, new Written)
}

private final class Batch {
  var offsets = false
  var required: Option[Set[String]] = None
  val pieces = new Pieces

  /** An executor was lost that may have held unannounced state of this batch. */
  var writerLostEarly = false
}

/**
 * The release of one run of one query: what may become durable next. Decides only; its twin is
 * `penstock.commit.release`, which says why each rule is there and which simulation explores. Both
 * are held to the same vectors. Not safe for threads.
 */
final class Release(
    first: Long,
    recorded: Boolean,
    val withLog: Boolean,
    behind: Long = 8,
    offsetsInMarker: Boolean = false)
    extends Progress {
  private var releasedTo = if (recorded) first else first - 1
  private var committedTo = first - 1
  private var copiedTo = first - 1
  private var stopReason: Option[String] = None
  private val batches = mutable.Map.empty[Long, Batch]
  private val deletes = mutable.Queue.empty[(Long, String)]
  private val underWay = mutable.Set.empty[Effect]
  private val lost = mutable.Set.empty[String]

  def released: Long = releasedTo
  def committed: Long = committedTo
  def copied: Long = copiedTo
  def stopped: Option[String] = stopReason

  def mayCompute(batch: Long): Boolean =
    committedTo >= batch - 2 && copiedTo >= batch - 2 - behind

  def isIdle: Boolean = underWay.isEmpty && deletes.isEmpty && lastHeld <= copiedTo

  def isCommitted: Boolean = lastHeld <= committedTo

  def isLost(batch: Long, piece: String): Boolean =
    batches.get(batch).exists(_.pieces.isLost(piece, lost))

  /** The batch has begun, and the location does not have all of it yet. */
  def isUnderWay(batch: Long): Boolean = batch > copiedTo && batches.contains(batch)

  /** Something of the batch that was written is not durable yet. */
  def isHeld(batch: Long): Boolean = batches.get(batch).exists(_.pieces.isAnyHeld(lost))

  /** Something of the batch that was written never will be. */
  def hasLost(batch: Long): Boolean = batches.get(batch).exists(_.pieces.isAnyLost(lost))

  /** The current write of each required piece; to be asked when PutMarker is asked for. */
  def durableWrites(batch: Long): Map[String, (String, Long)] = {
    val held = batches(batch)
    held.required.toSeq.flatten
      .flatMap(piece => held.pieces.durableWrite(piece, lost).map(piece -> _))
      .toMap
  }

  /** Names of what is waited for: effects under way, and what the next commit lacks. */
  def awaited: Seq[String] = underWay.toSeq.map(Release.nameOf).sorted ++ lacking

  def on(event: Event): Seq[Effect] =
    if (stopReason.isDefined || isLate(event)) Nil
    else
      event match {
        case OffsetsWritten(batch) =>
          at(batch).offsets = true
          next()
        case PieceWritten(batch, piece, writer, generation) =>
          at(batch).pieces.written(piece, writer, generation)
          next()
        case PieceDurable(batch, piece, writer, generation) =>
          at(batch).pieces.madeDurable(piece, writer, generation)
          next()
        case CommitWritten(batch, required) =>
          at(batch).required = Some(required)
          next()
        case DeleteAsked(path) =>
          deletes.enqueue((lastHeld, path))
          next()
        case WriterLost(writer) =>
          lost += writer
          at(committedTo + 1).writerLostEarly = true
          at(committedTo + 2).writerLostEarly = true
          next()
        case Done(effect) =>
          if (underWay.remove(effect)) done(effect)
          next()
        case Failed(effect, reason) =>
          underWay -= effect
          stop(reason)
      }

  /** What others still owe the batch that commits next. */
  private def lacking: Seq[String] = {
    val number = committedTo + 1
    val batch = batches.getOrElse(number, new Batch)
    if (underWay(PutOffsets(number)) || underWay(commitOf(number))) Nil
    else if (releasedTo < number && !batch.offsets) Seq(s"offsets/$number, from Spark")
    else
      batch.required.fold(Seq(s"commits/$number, from Spark")) { required =>
        required.toSeq.sorted
          .filter(batch.pieces.durableWrite(_, lost).isEmpty)
          .map(missing(number, batch, _))
      }
  }

  private def missing(number: Long, batch: Batch, piece: String): String = {
    val holders = batch.pieces.holders(piece, lost)
    val where =
      if (holders.isEmpty) "which no executor has written" else s"held by ${holders.mkString(", ")}"
    s"state $piece of batch $number, $where"
  }

  private def isLate(event: Event): Boolean = event match {
    case PieceWritten(batch, _, _, _) => batch <= committedTo
    case PieceDurable(batch, _, _, _) => batch <= committedTo
    case _ => false
  }

  private def at(batch: Long): Batch = batches.getOrElseUpdate(batch, new Batch)

  private def lastHeld: Long = batches
    .collect { case (number, batch) if batch.required.isDefined => number }
    .maxOption
    .getOrElse(committedTo)

  private def done(effect: Effect): Unit = effect match {
    case PutOffsets(batch) => releasedTo = batch
    case PutMarker(batch) =>
      releasedTo = batch
      committedTo = batch
    case PutCommit(batch) =>
      committedTo = batch
      copiedTo = batch
      batches -= batch
    case CopyBatch(batch) =>
      copiedTo = batch
      batches -= batch
    case Delete(_) | Stop(_) =>
  }

  private def next(): Seq[Effect] = {
    val number = committedTo + 1
    val waiting = batches.get(number).filterNot(_ => underWay(commitOf(number)))
    waiting.flatMap(lostPiece) match {
      case Some(piece) =>
        stop(
          s"an executor was lost with state of batch $number that was not durable yet ($piece); " +
            "the query goes on from the last durable batch when restarted")
      case None =>
        val step = waiting.flatMap(stepOf(number, _)).filter(underWay.add)
        val copy =
          if (withLog && copiedTo < committedTo) Some(CopyBatch(copiedTo + 1)).filter(underWay.add)
          else None
        val due = deletes.takeWhile(_._1 <= copiedTo).map { case (_, path) => Delete(path) }.toSeq
        due.foreach { effect =>
          deletes.dequeue()
          underWay += effect
        }
        step.toSeq ++ copy ++ due
    }
  }

  private def stepOf(number: Long, batch: Batch): Option[Effect] =
    if (releasedTo < number && !mayWaitForMarker(number, batch)) {
      Option.when(batch.offsets)(PutOffsets(number))
    } else batch.required.filter(isDurable(batch, _)).map(_ => commitOf(number))

  private def isDurable(batch: Batch, required: Set[String]): Boolean =
    required.forall(batch.pieces.durableWrite(_, lost).isDefined)

  /** The offsets of the batch may wait for its marker: no state waits for them. */
  private def mayWaitForMarker(number: Long, batch: Batch): Boolean =
    offsetsInMarker && batch.offsets && !underWay(PutOffsets(number)) &&
      batch.required.forall(isDurable(batch, _))

  private def commitOf(number: Long): Effect =
    if (withLog) PutMarker(number) else PutCommit(number)

  /** A required piece that is lost: its writers are, or a writer is and nobody announced it. */
  private def lostPiece(batch: Batch): Option[String] = batch.required.flatMap { required =>
    required.filter { piece =>
      if (batch.pieces.isKnown(piece)) batch.pieces.isLost(piece, lost) else batch.writerLostEarly
    }.minOption
  }

  private def stop(reason: String): Seq[Effect] = {
    stopReason = Some(reason)
    Seq(Stop(reason))
  }
}

private object Release {
  def nameOf(effect: Effect): String = effect match {
    case PutOffsets(batch) => s"offsets/$batch"
    case PutMarker(batch) => s"the marker of batch $batch"
    case PutCommit(batch) => s"commits/$batch"
    case CopyBatch(batch) => s"the copy of batch $batch"
    case Delete(path) => s"the delete of $path"
    case Stop(reason) => reason
  }
}
