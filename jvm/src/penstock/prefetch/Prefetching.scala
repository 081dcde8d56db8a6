// Scala because: it owns the cache and the threads that all tasks of a JVM share.
package penstock.prefetch

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

import penstock.Clock
import penstock.settings.PrefetchSettings

/**
 * The cache of one JVM with its threads, and the stores that are open in it. The settings of the
 * first store count, until no store is open any more.
 *
 * A store is opened and closed by whoever loads and closes its RocksDB; when its run ends, or the
 * application, it is only retired, since a task may still read through it.
 */
final class Prefetching(clock: Clock) extends StatePrefetch with Logging {
  import Prefetching._

  private val stores = new ConcurrentHashMap[(String, String), StoreCache]()
  private val thresholds = new ConcurrentHashMap[String, RunThreshold]()
  private val sketches = new ConcurrentHashMap[SketchOf, CountMinSketch]()
  private val ends = new ConcurrentHashMap[String, Map[String, Long]]()
  @volatile private var current = Option.empty[Shared]

  /** The cache in front of a store; the caller shuts it before RocksDB is closed. */
  def open(run: String, store: String, native: NativeStore, settings: PrefetchSettings): StoreCache =
    synchronized {
      val shared = sharedFor(settings)
      val opened = new StoreCache(
        run, store, native, shared.cache, clock, settings.isWriteBack,
        tune(run, settings.hotThreshold, _, _), () => ends.getOrDefault(run, Map.empty[String, Long]), hintOnward)
      stores.put((run, store), opened)
      opened
    }

  /** RocksDB is about to be closed; what the last store of a run leaves behind goes with it. */
  def close(store: StoreCache): Unit = {
    store.close()
    stores.remove((store.run, store.store), store)
    if (storesOf(store.run).isEmpty) forgetRun(store.run)
  }

  override def hint(hints: HintBatch): Boolean =
    try {
      val store = Option(stores.get((hints.run, hints.store)))
      store.foreach(_.hint(hints))
      store.isDefined
    } catch {
      case NonFatal(e) =>
        logWarning(s"hints for ${hints.store} were dropped", e)
        false
    }

  override def hotKeys(of: SketchOf, start: Int): HotKeys = current match {
    case Some(shared) if start < HotThreshold.Max =>
      Option(sketches.get(of)).getOrElse(newSketch(of, shared.cache, start))
    case _ => HotKeys.Nothing
  }

  override def reads(run: String, until: Map[String, Long]): Unit = {
    ends.merge(run, until, (before, now) => before ++ now.map { case (stream, position) =>
      stream -> math.max(position, before.getOrElse(stream, position))
    })
    ()
  }

  override def counts(run: String): Seq[PrefetchCounts] = storesOf(run).map(_.takeCounts())

  /** Whether any store of a run is open here. */
  def hasStore(run: String): Boolean = stores.keySet.asScala.exists(_._1 == run)

  /** Runs whose tasks have hinted here, and whose state is elsewhere. */
  def runsWithoutStore: Set[String] = sketches.keySet.asScala.map(_.run).filterNot(hasStore).toSet

  /** The run has ended here: nothing of it stays cached but writes that RocksDB lacks. */
  def forgetRun(run: String): Unit = synchronized {
    storesOf(run).foreach(retire)
    thresholds.remove(run)
    ends.remove(run)
    sketches.keySet.asScala.filter(_.run == run).foreach { key =>
      if (sketches.remove(key) != null) current.foreach(_.cache.giveBack(HotKeys.Bytes.toLong))
    }
  }

  /** Bytes in use, sketches included. */
  def bytes: Long = current.fold(0L)(_.cache.bytes)

  def close(): Unit = synchronized {
    stores.values.asScala.toSeq.foreach(retire)
    current.foreach(_.pool.close())
    current = None
  }

  private def retire(store: StoreCache): Unit = {
    store.retire()
    stores.remove((store.run, store.store), store)
    ()
  }

  private def storesOf(run: String): Seq[StoreCache] =
    stores.values.asScala.filter(_.run == run).toSeq.sortBy(_.store)

  private def hintOnward(hints: HintBatch): Unit = {
    hint(hints)
    ()
  }

  private def tune(run: String, start: Int, batch: Long, counted: HotBatch): Unit = {
    thresholds.compute(run, (_, before) =>
      if (before == null) RunThreshold(start, batch, counted) else before.after(batch, counted, start))
    ()
  }

  /** Where the budget has no room for a sketch, every key is hinted. */
  private def newSketch(of: SketchOf, cache: StateCache, start: Int): HotKeys = synchronized {
    def fresh = {
      val sketch = new CountMinSketch(() => Option(thresholds.get(of.run)).fold(start)(_.value))
      sketches.put(of, sketch)
      sketch
    }
    Option(sketches.get(of)).getOrElse {
      if (cache.reserve(HotKeys.Bytes.toLong)) fresh else HotKeys.Nothing
    }
  }

  private def sharedFor(settings: PrefetchSettings): Shared = {
    val asked = settings.shared
    current match {
      case Some(shared) if shared.settings == asked => shared
      case Some(shared) if shared.cache.storesOpen > 0 =>
        logWarning(s"stores are open in a cache with ${shared.settings}, so a store that asks for " +
          s"$asked gets the same")
        shared
      case _ =>
        settings.check()
        current.foreach(_.pool.close())
        sketches.clear()
        current = Some(new Shared(asked, clock))
        current.get
    }
  }
}

private object Prefetching {

  /** Cache and threads, which each ask the other. */
  final class Shared(val settings: PrefetchSettings.Shared, clock: Clock) {
    val cache: StateCache =
      new StateCache(EvictionOrder.named(settings.order), settings.bytesMax, clock, () => pool.wake())
    lazy val pool: FetchPool =
      new FetchPool(settings.threads, cache, () => cache.nextWork(settings.threads))
  }
}
