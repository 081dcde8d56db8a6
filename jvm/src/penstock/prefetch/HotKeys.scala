// Scala because: tasks count the keys of their rows, each in a few nanoseconds.
package penstock.prefetch

import scala.util.hashing.MurmurHash3

/** Whether a key comes so often that its state is in memory anyway, so that no hint is needed. */
trait HotKeys {

  /** Counts the key, and says whether it is hot. Two threads at once may lose counts. */
  def isHot(key: Array[Byte]): Boolean
}

object HotKeys {

  /** Of one task: the bytes of a sketch. */
  val Bytes: Int = CountMinSketch.Rows * CountMinSketch.Width

  /** No key is hot. */
  object Nothing extends HotKeys {
    override def isHot(key: Array[Byte]): Boolean = false
  }
}

/**
 * A count-min sketch whose counters stop at 255 and are halved every so many keys, so that what was
 * frequent once is forgotten. The Python twin is `penstock.prefetch.sketch`.
 *
 * @param threshold asked for each key, as it is tuned at run time: a key is hot if all its counters
 *   are above it
 */
final class CountMinSketch(threshold: () => Int) extends HotKeys {
  import CountMinSketch._

  private val counters = new Array[Byte](Rows * Width)
  private var keys = 0

  override def isHot(key: Array[Byte]): Boolean = {
    if (keys >= KeysToHalve) halve()
    keys += 1
    val first = MurmurHash3.bytesHash(key, FirstSeed)
    val second = MurmurHash3.bytesHash(key, SecondSeed) | 1
    var least = Max
    var row = 0
    while (row < Rows) {
      val index = row * Width + Integer.remainderUnsigned(first + row * second, Width)
      val count = math.min((counters(index) & Max) + 1, Max)
      counters(index) = count.toByte
      least = math.min(least, count)
      row += 1
    }
    least > threshold()
  }

  private def halve(): Unit = {
    keys = 0
    counters.indices.foreach(index => counters(index) = ((counters(index) & Max) >> 1).toByte)
  }
}

object CountMinSketch {
  val Rows = 4
  val Width = 10240
  val KeysToHalve = 65536
  private val Max = 255
  private val FirstSeed = 0x5eed
  private val SecondSeed = 0xfeed
}

/** Reads and misses of a store in one batch, and how many keys were not hinted as they are hot. */
final case class HotBatch(reads: Long, misses: Long, suppressed: Long) {
  def +(other: HotBatch): HotBatch =
    HotBatch(reads + other.reads, misses + other.misses, suppressed + other.suppressed)
}

/**
 * The threshold of a run in one JVM. It is tuned once for each batch, when the first store commits
 * the next one, by what all stores have counted.
 */
final case class RunThreshold(value: Int, batch: Long, counted: HotBatch) {
  def after(committed: Long, store: HotBatch, start: Int): RunThreshold =
    if (committed <= batch) copy(counted = counted + store)
    else RunThreshold(HotThreshold.tuned(value, start, counted), committed, store)
}

/** The threshold of hot keys after a batch: more keys are hinted where many reads miss. */
object HotThreshold {
  val Max = 255
  private val ReadsMin = 100
  private val RaiseAbove = 0.02
  private val LowerBelow = 0.005

  def tuned(threshold: Int, start: Int, batch: HotBatch): Int = {
    val share = batch.misses.toDouble / math.max(1, batch.reads)
    if (batch.reads < ReadsMin) threshold
    else if (share > RaiseAbove && batch.suppressed > 0) math.min(Max, threshold * 2)
    else if (share < LowerBelow) math.max(start, threshold - math.max(1, threshold / 8))
    else threshold
  }
}
