// Scala because: executors count their reads of state and send the counts to the driver.
package penstock.prefetch

/**
 * What the cache of one store did since it was last asked.
 *
 * @param hits reads by the task that the cache answered, a fetch waited for included
 * @param misses reads by the task that went to RocksDB
 * @param waited hits that had to wait for a fetch under way
 * @param used prefetched entries that a task came to read, by who hinted them first
 * @param unused prefetched entries that were unread when the batch they were hinted for had been
 *   committed, by who hinted them first
 * @param hinted keys in hints, by candidate, suppressed and dropped ones not among them
 * @param suppressed keys that were not hinted because they are hot
 * @param dropped keys of hints that were over the bound, whose fetch failed, or that were not fetched before
 *   their batch was over
 * @param late keys of hints that came when the batch that they were for was committed
 * @param bytes held for this store, at this moment
 * @param evictions entries that made room for others
 * @param keptWrites writes that stayed here, for RocksDB to have them later
 * @param hintBytes of the keys in hints, and their times
 * @param accessTimes of single reads of RocksDB, by tasks and by fetches
 * @param fetchTimes of the same reads, those by fetches from when nothing but a thread was missing
 *   until the value is here: with more keys than threads that is more than a read
 * @param pathNs time in which tasks read RocksDB themselves or waited for a fetch under way
 */
final case class PrefetchCounts(
    run: String,
    store: String,
    hits: Long,
    misses: Long,
    waited: Long,
    used: Map[Candidate, Long],
    unused: Map[Candidate, Long],
    hinted: Map[Candidate, Long],
    suppressed: Long,
    dropped: Long,
    late: Long,
    bytes: Long,
    evictions: Long,
    keptWrites: Long,
    hintBytes: Long,
    accessTimes: AccessTimes,
    fetchTimes: AccessTimes,
    pathNs: Long) {

  /** Whether nothing happened: what is held is no news by itself. */
  def isQuiet: Boolean = hits + misses + dropped + late + suppressed + evictions + keptWrites + hintBytes == 0 &&
    unused.values.sum == 0 && accessTimes.total == 0
}

/**
 * A histogram of times: `counts(i)` of them were below `AccessTimes.boundNs(i)` and not below the
 * bound before it.
 */
final case class AccessTimes(counts: Vector[Long]) {
  def total: Long = counts.sum

  def +(other: AccessTimes): AccessTimes =
    AccessTimes(counts.zipAll(other.counts, 0L, 0L).map { case (a, b) => a + b })

  /** A time that a share of all are not above, to a quarter exact; 0 if there are none. */
  def percentileNs(share: Double): Long = {
    val rank = math.ceil(total * share).toLong
    val place = counts.iterator.scanLeft(0L)(_ + _).drop(1).indexWhere(_ >= rank)
    if (total == 0) 0 else AccessTimes.boundNs(place)
  }
}

object AccessTimes {

  /** Four to each doubling, from a quarter of a microsecond up to some minutes. */
  val Buckets: Int = 120

  val empty: AccessTimes = AccessTimes(Vector.fill(Buckets)(0L))

  /** The upper bound of a bucket, not included. */
  def boundNs(bucket: Int): Long = math.round(FirstNs * math.pow(2, bucket / 4.0))

  def bucketOf(ns: Long): Int = {
    val place = math.floor(4 * math.log(ns.toDouble / FirstNs) / math.log(2)).toInt + 1
    if (ns < FirstNs) 0 else math.min(place, Buckets - 1)
  }

  private val FirstNs = 250.0
}
