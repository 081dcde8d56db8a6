package penstock.prefetch.contract

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.sql.execution.streaming.state.contract.ManualClock

import penstock.prefetch._

/** A RocksDB that is a map; `onRead` is called within every read. */
final class CountedStore extends NativeStore {
  private val rows = new ConcurrentHashMap[String, String]()
  private val readCount = new AtomicInteger
  private val lateReads = new AtomicInteger
  @volatile private var isClosed = false
  @volatile var onRead: () => Unit = () => ()

  def put(key: String, value: String): Unit = { rows.put(key, value); () }

  def size: Int = rows.size

  def reads: Int = readCount.get

  def readsWhileClosed: Int = lateReads.get

  def close(): Unit = isClosed = true

  override def read(family: String, key: Array[Byte]): Array[Byte] = {
    onRead()
    readCount.incrementAndGet()
    if (isClosed) lateReads.incrementAndGet()
    Option(rows.get(new String(key))).map(_.getBytes).orNull
  }

  override def readAll(family: String, keys: Array[Array[Byte]]): Array[Array[Byte]] =
    keys.map(read(family, _))

  override def write(family: String, key: Array[Byte], value: Array[Byte]): Unit = {
    if (value == null) rows.remove(new String(key)) else rows.put(new String(key), new String(value))
    ()
  }

  override def fetchKeysMax: Int = 2
}

/** One store with a cache of so many small entries; the caller does what the pool would do. */
final class CacheRig private (val cache: StateCache, val clock: ManualClock, isBack: Boolean) {
  private def this(entries: Int, clock: ManualClock, isBack: Boolean) =
    this(new StateCache(EvictionOrder.named("timestamp"), entries * 130L, clock, () => ()), clock, isBack)

  def this(entries: Int = 1000, isBack: Boolean = false) = this(entries, new ManualClock, isBack)

  val native = new CountedStore

  /** What a fetched value leads to is hinted to the same store. */
  var followUp = Option.empty[FollowUp]

  /** How far the batch under way reads the stream of which rows are hinted in the log. */
  var readTo = 0L
  val store = new StoreCache(
    "run", "store", native, cache, clock, isBack, (_, _) => (), () => Map("stream" -> readTo),
    batch => hintAgain(batch))
  store.open()

  private def hintAgain(batch: HintBatch): Unit = store.hint(batch)

  /** Another store in the same cache. */
  def another(): CacheRig = new CacheRig(cache, clock, isBack)

  def get(key: String): Option[String] =
    Option(store.get("default", key.getBytes, fills = true)).map(new String(_))

  def put(key: String, value: String): Unit = store.write("default", key.getBytes, value.getBytes)

  def remove(key: String): Unit = store.write("default", key.getBytes, null)

  /** Keys with their times, for the batch under way. */
  def hint(keys: (Int, String)*): Unit = hintFor(store.batchNow, keys: _*)

  def hintFor(batch: Long, keys: (Int, String)*): Unit = store.hint(HintBatch(
    "run", "store", "default", Candidate.C, keys.map(_._2.getBytes).toArray,
    keys.map(_._1.toLong).toArray, HintExpiry.of(Candidate.C, batch), followUp = followUp))

  /** Of rows that wait in the log up to a position. */
  def hintInLog(position: Long, keys: String*): Unit = store.hint(HintBatch(
    "run", "store", "default", Candidate.A, keys.map(_.getBytes).toArray, keys.map(_ => 10L).toArray,
    HintExpiry.of(Candidate.A, store.batchNow, Some(LogPosition("stream", position)))))

  /** As the threads of the pool do. */
  def fetchAll(): Unit = {
    var work = cache.nextWork(threads = 1)
    while (work.isDefined) {
      work.foreach(_.perform())
      work = cache.nextWork(threads = 1)
    }
  }

  /** A thread has taken a fetch and read for it; it ends when the returned is called. */
  def heldFetch(): () => Unit = cache.nextWork(threads = 1) match {
    case Some(chunk: FetchChunk) =>
      if (chunk.begin()) chunk.read()
      () => chunk.end()
    case other => throw new IllegalStateException(s"there is $other to do, and no fetch")
  }

  def counts(): PrefetchCounts = store.takeCounts()

  def usedOf(counts: PrefetchCounts): Long = counts.used(Candidate.C)

  def unusedOf(counts: PrefetchCounts): Long = counts.unused(Candidate.C)

  /** How often the store below is read by the body. */
  def reads(body: => Any): Int = {
    val before = native.reads
    body
    native.reads - before
  }
}

/** A pool of one thread that gets single pieces of work, each as soon as the last one is done. */
final class PoolRig {
  private val monitor = new Object
  private var waiting = 0
  @volatile private var done = 0
  private val pool = new FetchPool(1, monitor, () => next())

  private def next(): Option[FetchWork] = {
    val isAny = waiting > 0
    if (isAny) waiting -= 1
    Option.when(isAny)(() => done += 1)
  }

  /** How many of so many pieces are done, each within a second. */
  def perform(pieces: Int): Int = {
    var asked = 0
    while (asked < pieces && asked == done) {
      monitor.synchronized {
        waiting += 1
        pool.wake()
      }
      asked += 1
      val end = System.nanoTime() + 1000000000L
      while (done < asked && System.nanoTime() < end) Thread.onSpinWait()
    }
    pool.close()
    done
  }
}
