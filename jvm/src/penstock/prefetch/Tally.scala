// Scala because: it counts what tasks of this JVM read of their state.
package penstock.prefetch

/** Counts of one store since they were last taken. Under the cache's lock. */
private[prefetch] final class Tally {
  var hits = 0L
  var misses = 0L
  var waited = 0L
  var suppressed = 0L
  var dropped = 0L
  var late = 0L
  var evictions = 0L
  var keptWrites = 0L
  private var pathNs = 0L
  private var hintBytes = 0L
  private val used = new Array[Long](Candidate.all.size)
  private val unused = new Array[Long](Candidate.all.size)
  private val hinted = new Array[Long](Candidate.all.size)
  private val times = new Array[Long](AccessTimes.Buckets)
  private val fetchTimes = new Array[Long](AccessTimes.Buckets)

  // Of the batch under way, for the threshold of hot keys.
  private var hitsBefore = 0L
  private var missesBefore = 0L
  private var suppressedBefore = 0L

  def read(by: Candidate): Unit = used(by.rank) += 1

  def leftUnread(by: Candidate): Unit = unused(by.rank) += 1

  def hintedBy(candidate: Candidate, keyBytes: Int): Unit = {
    hinted(candidate.rank) += 1
    hintBytes += keyBytes + java.lang.Long.BYTES
  }

  /** The task has read a key itself, which took so long. */
  def missed(ns: Long): Unit = {
    misses += 1
    pathNs += ns
    fetched(ns, ns)
  }

  /** The task has waited for a fetch, which took so long. */
  def awaited(ns: Long): Unit = pathNs += ns

  /** A key was read for so long, and is here so long after nothing but a thread was missing. */
  def fetched(readNs: Long, readyNs: Long): Unit = {
    times(AccessTimes.bucketOf(readNs)) += 1
    fetchTimes(AccessTimes.bucketOf(readyNs)) += 1
  }

  /** Reads, misses and suppressed keys since this was last asked. */
  def ofBatch(): HotBatch = {
    val batch = HotBatch(
      hits + misses - hitsBefore - missesBefore,
      misses - missesBefore,
      suppressed - suppressedBefore)
    rememberBatch()
    batch
  }

  def take(run: String, store: String, bytes: Long): PrefetchCounts = {
    val taken = PrefetchCounts(
      run, store, hits, misses, waited, byCandidate(used), byCandidate(unused),
      byCandidate(hinted), suppressed, dropped, late, bytes, evictions,
      keptWrites, hintBytes,
      AccessTimes(times.toVector), AccessTimes(fetchTimes.toVector), pathNs)
    hitsBefore -= hits
    missesBefore -= misses
    suppressedBefore -= suppressed
    hits = 0
    misses = 0
    waited = 0
    suppressed = 0
    dropped = 0
    late = 0
    evictions = 0
    keptWrites = 0
    pathNs = 0
    hintBytes = 0
    Seq(used, unused, hinted, times, fetchTimes).foreach(java.util.Arrays.fill(_, 0L))
    taken
  }

  private def rememberBatch(): Unit = {
    hitsBefore = hits
    missesBefore = misses
    suppressedBefore = suppressed
  }

  private def byCandidate(counts: Array[Long]): Map[Candidate, Long] =
    Candidate.all.map(candidate => candidate -> counts(candidate.rank)).toMap
}
