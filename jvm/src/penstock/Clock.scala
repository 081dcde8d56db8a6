// Scala because: threads of Spark's JVM wait and pause here, and a monitor of theirs wakes them.
package penstock

/**
 * Time as an argument. All that reads a clock, pauses, or waits no longer than so long does it
 * through a Clock, so that a test can turn it by hand; this file alone asks the JVM.
 */
trait Clock {

  /** A moment in nanoseconds; only the difference of two of them means anything. */
  def nanos: Long

  /** Milliseconds since 1970, to compare with the times of files. */
  def wallMs: Long

  /**
   * The same, as the wall clock stood when it was first read, and even since then: setting that clock
   * does not change the order of two of these moments.
   */
  def steadyMs: Long

  def sleepNs(ns: Long): Unit

  final def sleepMs(ms: Long): Unit = sleepNs(ms * Clock.NsInMs)

  /** Waits on a monitor that the caller holds; may return early, `await` looks again. */
  protected def waitOn(monitor: AnyRef, untilNs: Long): Unit

  /**
   * Blocks until `isReady`, or the limit is over; returns whether it is ready. It is looked at
   * under the lock of `monitor`, and again whenever that is notified: whoever changes what it
   * depends on must do so.
   */
  final def await(monitor: AnyRef, limitMs: Long)(isReady: => Boolean): Boolean =
    monitor.synchronized {
      val end = deadline(limitMs)
      while (!isReady && !end.isOver) waitOn(monitor, end.atNs)
      isReady
    }

  final def deadline(limitMs: Long): Deadline = new Deadline(this, nanos + limitMs * Clock.NsInMs)
}

/** The moment at which something is given up. */
final class Deadline(clock: Clock, val atNs: Long) {
  def isOver: Boolean = clock.nanos - atNs >= 0
}

/** Pauses between tries, each longer than the one before it up to a longest one. */
final class Backoff(clock: Clock, firstMs: Long, longestMs: Long) {
  private var followingMs = firstMs

  /** How long the next pause is; the one after it is longer. */
  def nextMs(): Long = {
    val ms = followingMs
    followingMs = math.min(ms * 2, longestMs)
    ms
  }

  def pause(): Unit = clock.sleepMs(nextMs())

  def reset(): Unit = followingMs = firstMs
}

object Clock {
  val NsInMs: Long = 1000L * 1000

  /** The clock of this machine. */
  object System extends Clock {
    override def nanos: Long = java.lang.System.nanoTime()

    override def wallMs: Long = java.lang.System.currentTimeMillis()

    private val startMs: Long = wallMs - nanos / NsInMs

    override def steadyMs: Long = startMs + nanos / NsInMs

    override def sleepNs(ns: Long): Unit = Thread.sleep(ns / NsInMs, (ns % NsInMs).toInt)

    override protected def waitOn(monitor: AnyRef, untilNs: Long): Unit = {
      val leftNs = untilNs - nanos
      if (leftNs > 0) monitor.wait(leftNs / NsInMs, (leftNs % NsInMs).toInt)
    }
  }
}
