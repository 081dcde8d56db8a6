// Scala because: the cache of a store on an executor decides by it what was prefetched for nothing.
package penstock.prefetch

/** All rows of a stream of the log up to a position. */
final case class LogPosition(stream: String, position: Long)

/**
 * The moment from which on a hint is of no use, and a value that was fetched for it and that no task
 * has read counts as unused and may be evicted.
 *
 * @param lastBatch this batch is committed by its store
 * @param readBy of rows that wait in the log when they are hinted: the batch that has read up to
 *   there is committed, however many come before it
 */
final case class HintExpiry(lastBatch: Long, readBy: Option[LogPosition] = None) {

  /** Of two hints for one key the later counts. */
  def orLater(other: HintExpiry): HintExpiry = {
    val later = (readBy.toSeq ++ other.readBy).maxByOption(_.position)
    HintExpiry(math.max(lastBatch, other.lastBatch), later)
  }

  /**
   * Whether the moment has passed.
   *
   * @param batch of the store that is under way; those before it are committed
   * @param passed how far the last of them had read each stream
   */
  def isOver(batch: Long, passed: Map[String, Long]): Boolean =
    readBy.flatMap(rows => passed.get(rows.stream).map(_ >= rows.position))
      .getOrElse(lastBatch < batch)
}

object HintExpiry {

  /** Of what was not hinted. */
  val Never: HintExpiry = HintExpiry(Long.MaxValue)

  /** Of a hint made in a batch: for its own rows, or for those that wait in the log behind it. */
  def of(candidate: Candidate, batch: Long, readBy: Option[LogPosition] = None): HintExpiry =
    HintExpiry(if (candidate == Candidate.A) batch + BatchesBehind else batch, readBy)

  /** Where it is not known how far batches read, rows in the log are read by the second from now. */
  private val BatchesBehind = 2
}
