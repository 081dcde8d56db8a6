// Scala because: executors' counts meet in the driver's JVM, where the controller reads them.
package penstock.prefetch

/**
 * What all stores of one stateful operator counted; with `+` of several times and executors.
 *
 * @param bytes held at the last count, by store
 */
private[prefetch] final case class OperatorCounts(
    hits: Long = 0,
    misses: Long = 0,
    waited: Long = 0,
    used: Map[Candidate, Long] = Map.empty,
    unused: Map[Candidate, Long] = Map.empty,
    hinted: Map[Candidate, Long] = Map.empty,
    suppressed: Long = 0,
    dropped: Long = 0,
    late: Long = 0,
    bytes: Map[String, Long] = Map.empty,
    evictions: Long = 0,
    keptWrites: Long = 0,
    hintBytes: Long = 0,
    accessTimes: AccessTimes = AccessTimes.empty,
    fetchTimes: AccessTimes = AccessTimes.empty,
    pathNs: Long = 0) {
  import OperatorCounts._

  def +(other: PrefetchCounts): OperatorCounts = OperatorCounts(
    hits + other.hits,
    misses + other.misses,
    waited + other.waited,
    sum(used, other.used),
    sum(unused, other.unused),
    sum(hinted, other.hinted),
    suppressed + other.suppressed,
    dropped + other.dropped,
    late + other.late,
    bytes.updated(other.store, other.bytes),
    evictions + other.evictions,
    keptWrites + other.keptWrites,
    hintBytes + other.hintBytes,
    accessTimes + other.accessTimes,
    fetchTimes + other.fetchTimes,
    pathNs + other.pathNs)

  def reads: Long = hits + misses

  def prefetches: Map[Candidate, Prefetches] = Candidate.all
    .map(each => each -> Prefetches(used.getOrElse(each, 0L), unused.getOrElse(each, 0L)))
    .filter(_._2.total > 0)
    .toMap

  /** Reads of the stores by the time that none of them took longer than, in microseconds. */
  def accessUs: Map[Long, Long] = byBoundUs(accessTimes)

  /** The same with the time that keys waited for a thread. */
  def fetchUs: Map[Long, Long] = byBoundUs(fetchTimes)
}

private[prefetch] object OperatorCounts {
  private val Folder = """(?:.*/)?state/(\d+)/\d+(?:/[^/]+)?/?""".r

  /** The number of the operator that a store belongs to, by the store's folder. */
  def operatorOf(store: String): Option[Long] = store match {
    case Folder(operator) => operator.toLongOption
    case _ => None
  }

  private def sum(counts: Map[Candidate, Long], more: Map[Candidate, Long]): Map[Candidate, Long] =
    (counts.toSeq ++ more).groupMapReduce(_._1)(_._2)(_ + _)

  private def byBoundUs(times: AccessTimes): Map[Long, Long] = times.counts.zipWithIndex
    .collect { case (count, bucket) if count > 0 => upperUs(bucket) -> count }
    .groupMapReduce(_._1)(_._2)(_ + _)

  private def upperUs(bucket: Int): Long = math.max(1L, (AccessTimes.boundNs(bucket) + 999) / 1000)
}
