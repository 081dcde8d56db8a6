// Scala because: executors divide the state of their tasks into requests by these bounds.
package penstock.wire

/**
 * What the log takes from a run in one entry and in one request, as its take-over was told.
 *
 * @param entryBytes the largest file
 * @param requestBytes all files of a request together
 * @param requestFiles how many files a request may have
 */
final case class LogLimits(entryBytes: Long, requestBytes: Long, requestFiles: Int) {
  import LogLimits._

  /** The largest part of a file that is appended in parts. */
  def partBytes: Long = math.min(entryBytes, requestBytes)

  /** Whether the files of one piece, of these sizes, go through the log, in one request. */
  def take(sizes: Iterable[Long]): Boolean =
    sizes.forall(_ <= math.min(entryBytes, FileBytesMax)) && sizes.sum <= requestBytes &&
      sizes.size <= requestFiles

  /** The first of these that fit into one request, at least one. */
  def firstRequest[A](items: Seq[A])(files: A => Seq[(String, Long)]): Seq[A] = {
    val sums = items.scanLeft((0L, 0L, 0)) { case ((bytes, named, count), item) =>
      val own = files(item)
      (bytes + own.map(_._2).sum, named + own.map(_._1.length + NameBytes).sum, count + own.size)
    }
    val fitting = sums.tail.takeWhile { case (bytes, named, count) =>
      bytes <= math.min(requestBytes, RequestBytes) && named <= NamedBytesMax && count <= requestFiles
    }
    items.take(math.max(1, fitting.size))
  }
}

object LogLimits {

  /** A file of more than this goes to the location itself; the log is for small entries. */
  val FileBytesMax: Long = 8L << 20

  /** A server that names no bounds has at least these. */
  val Unnamed: LogLimits = LogLimits(FileBytesMax, 64L << 20, 1000)

  /** A request is sent at this size: a JVM has the bytes of one at a time. */
  private val RequestBytes: Long = 16L << 20

  /** The names of all files of a request are in one message of JetStream, which has 64 KiB for it. */
  private val NamedBytesMax: Long = 48L << 10
  private val NameBytes = 40
}
