// Scala because: tasks of this JVM take from it the pages of the log that were read before them.
package penstock.prefetch

import scala.collection.mutable

/** One substream as one query reads it. */
final case class AheadOf(query: String, stream: String, substream: Int, columns: Int)

/** All rows of a substream in `(after, until]`, page by page as the server gave them. */
final case class AheadRange(after: Long, until: Long, pages: Seq[Array[Byte]]) {
  def bytes: Long = pages.map(_.length.toLong).sum
}

/**
 * Pages of the log that were read before any batch was to read them, of all queries of this JVM.
 * Ranges of a substream follow each other without a gap. What finds no room is not kept: the task
 * reads it again.
 */
final class AheadPages(bytesMax: Long) {
  private val ranges = mutable.HashMap.empty[AheadOf, Vector[AheadRange]]
  private var held = 0L
  private var takenCount = 0L

  /** False if there is no room, or the range does not follow the last one. */
  def offer(of: AheadOf, range: AheadRange): Boolean = synchronized {
    val before = ranges.getOrElse(of, Vector.empty)
    val follows = before.lastOption.forall(_.until == range.after)
    val isKept = follows && held + range.bytes <= bytesMax
    if (isKept) {
      ranges(of) = before :+ range
      held += range.bytes
    }
    isKept
  }

  /**
   * What is here of `(after, until]`, from its beginning on; the rest is to be read. What lies before
   * it is dropped, and a range that reaches beyond it too: rows of a page cannot be told apart.
   */
  def take(of: AheadOf, after: Long, until: Long): Seq[AheadRange] = synchronized {
    val (inside, later) = ranges.remove(of).getOrElse(Vector.empty)
      .dropWhile(_.after < after)
      .span(_.until <= until)
    val taken = if (inside.headOption.exists(_.after == after)) inside else Vector.empty
    if (later.headOption.exists(_.after == until)) ranges(of) = later
    held = ranges.valuesIterator.flatten.map(_.bytes).sum
    takenCount += taken.map(_.pages.size).sum
    taken
  }

  /** Forgets what a batch before this position has read in another way. */
  def dropUntil(of: AheadOf, position: Long): Unit = synchronized {
    ranges.get(of).foreach { before =>
      val (over, left) = before.span(_.until <= position)
      held -= over.map(_.bytes).sum
      if (left.isEmpty) ranges -= of else ranges(of) = left
    }
  }

  /** How far a substream was read ahead, if anything of it is here. */
  def end(of: AheadOf): Option[Long] = synchronized(ranges.get(of).flatMap(_.lastOption).map(_.until))

  def forget(of: AheadOf): Unit = synchronized {
    ranges.remove(of).foreach(dropped => held -= dropped.map(_.bytes).sum)
  }

  def bytes: Long = synchronized(held)

  def room: Long = synchronized(bytesMax - held)

  /** Pages that tasks have taken so far. */
  def taken: Long = synchronized(takenCount)
}

object AheadPages {

  /** Of one JVM: beyond it rows are hinted and read again by their task. */
  val BytesMax: Long = 32L << 20
}
