// Scala because: every state store of a task decides by these whether its reads are cached.
package penstock.settings

import org.apache.hadoop.conf.Configuration

import penstock.BadCall

/** The settings of prefetching, read from a Hadoop configuration made by Spark. */
final class PrefetchSettings(conf: Configuration) {
  import PrefetchSettings._

  /** The order of eviction; None: there is no cache. */
  val cacheOrder: Option[String] = {
    val whereHinted = if (Keys.Prefetch.value(get) == Off) Off else "timestamp"
    Some(Keys.PrefetchCache.find(get).getOrElse(whereHinted)).filterNot(_ == Off)
  }

  /** Whether RocksDB reads its files past the operating system's cache. */
  val isDirect: Boolean = Keys.PrefetchReads.value(get) == "direct"

  /** Whether a read that needs a block waits a millisecond more. */
  val isSlow: Boolean = Keys.PrefetchReads.value(get) == "slow1ms"

  def isWriteBack: Boolean = Keys.PrefetchCacheWrites.value(get) == "back"

  /** How often a key may come, at first, before it is hot. */
  def hotThreshold: Int = Keys.PrefetchHotThreshold.value(get).toInt

  def shared: Shared = Shared(
    cacheOrder.getOrElse(Off),
    Keys.PrefetchCacheBytes.value(get),
    Keys.PrefetchThreads.value(get).toInt)

  /** Refuses a cache that would leave tasks too little memory. */
  def check(): Unit = {
    val most = Runtime.getRuntime.maxMemory / 4
    if (shared.bytesMax > most) {
      throw new BadCall(
        "cache_too_large",
        s"${Keys.PrefetchCacheBytes} is ${shared.bytesMax}, more than a quarter of this JVM's " +
          s"heap, which is $most bytes; make it smaller, or give executors more memory")
    }
  }

  private def get(key: String): Option[String] = Option(conf.get(key))
}

object PrefetchSettings {
  private val Off = "off"

  /** What all stores of a JVM have in common. */
  final case class Shared(order: String, bytesMax: Long, threads: Int) {
    override def toString: String = s"order $order, $bytesMax bytes and $threads threads"
  }
}
