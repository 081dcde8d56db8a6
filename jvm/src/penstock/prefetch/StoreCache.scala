// Scala because: every read and write of a task's state goes through it.
package penstock.prefetch

import java.util.{HashMap, LinkedHashSet}

import penstock.{Bug, Clock}

/**
 * The cached part of one open store. Its task alone reads and writes through it, and reads a key
 * before it puts it: of a task with two threads, as `applyInPandasWithState` has, one reads the
 * state of a group while the other puts that of an earlier one. Fetches run beside the task, and
 * beside a commit under way.
 *
 * There is one truth: what is read here is what RocksDB would have answered, had every write gone
 * there at once. So a write to a key voids a fetch of it that is in flight, and before RocksDB is
 * closed, reopened or rolled back, `shut` lets the last fetch leave and forgets everything. While
 * it is shut, nothing is cached, and the caller goes to RocksDB itself. Whoever loads and closes
 * RocksDB opens, shuts and closes it, and nobody else: that never happens under a running task.
 *
 * @param isBack whether writes stay here until they are evicted, scanned or committed
 * @param readTo how far the batch under way reads each stream of the log
 * @param hintOnward takes the hints that follow from values that were fetched
 */
final class StoreCache private[prefetch] (
    val run: String,
    val store: String,
    native: NativeStore,
    cache: StateCache,
    clock: Clock,
    isBack: Boolean,
    onBatch: (Long, HotBatch) => Unit,
    readTo: () => Map[String, Long] = () => Map.empty,
    hintOnward: HintBatch => Unit = _ => ()) {
  import StoreCache._

  private[prefetch] val entries = new HashMap[StateKey, Entry]()
  private[prefetch] val unread = new LinkedHashSet[Entry]()
  private[prefetch] val unwritten = new LinkedHashSet[Entry]()
  private[prefetch] val leaving = new LinkedHashSet[Entry]()
  private[prefetch] val tally = new Tally
  private[prefetch] val reads = new NativeReads
  private[prefetch] var bytes = 0L
  private val hints = new StoreHints(this, native, cache, clock, readTo, hintOnward)
  private val writeBack = new WriteBack(this, native, cache)
  private var latestReadMs = Long.MinValue
  private var isBackNow = isBack

  /** Writes of this batch were here and are nowhere now. */
  private var hasLost = false
  @volatile private var opened = false
  @volatile private var closed = false
  @volatile private var retired = false
  cache.add(this)

  /** Whether it answers; if not, RocksDB is to be asked. */
  def isOpen: Boolean = opened

  /** Whether it keeps nothing any more: a load needs another one. */
  def isOver: Boolean = closed || retired

  private[prefetch] def isRetired: Boolean = retired

  private[prefetch] def takesIn: Boolean = opened && !isOver

  /** RocksDB is loaded, and stays so until `shut`. */
  def open(): Unit = cache.synchronized {
    if (!closed) {
      hasLost = false
      reads.open()
      opened = true
      hints.opened()
    }
  }

  /** The version that a batch begins with is loaded. */
  def begin(batch: Long): Unit = cache.synchronized(hints.begin(batch))

  /** Returns when nothing but the caller reads RocksDB; then nothing of it is cached any more. */
  def shut(): Unit = {
    opened = false
    reads.shut()
    isBackNow = isBack
    val all = cache.synchronized {
      hasLost ||= !unwritten.isEmpty
      hints.voidIf(_ => true)
      entries.values.toArray(Array.empty[Entry])
    }
    cache.forgetIf(all)(_ => true)
    cache.synchronized(cache.roomCame())
  }

  /** For good: RocksDB is about to be closed, or another cache comes before it. */
  def close(): Unit = {
    shut()
    closed = true
    hints.dropAll()
    cache.remove(this)
  }

  /**
   * Its run is over. A task of it may still be at work, so it answers as before, and keeps nothing
   * but writes that RocksDB has not.
   */
  def retire(): Unit = {
    val all = cache.synchronized {
      retired = true
      hints.voidIf(_ => true)
      entries.values.toArray(Array.empty[Entry])
    }
    hints.dropAll()
    cache.forgetIf(all)(!_.isDirty)
    cache.synchronized(cache.roomCame())
  }

  /** Whether writes are here that RocksDB has not. */
  def hasUnwritten: Boolean = isBack && cache.synchronized(!unwritten.isEmpty)

  /**
   * The value of a key, null if there is none.
   *
   * @param fills whether the read is one by a row; one of a scan fills and renews nothing
   */
  def get(family: String, bytes: Array[Byte], fills: Boolean): Array[Byte] = {
    val key = new StateKey(family, bytes)
    var entry: Entry = null
    var fetch: Fetch = null
    cache.synchronized {
      entry = entries.get(key)
      if (entry == null && fills) fetch = hints.look(key)
      else if (fills) hit(entry)
    }
    if (entry != null) entry.value
    else if (fetch != null) awaited(key, fetch)
    else readHere(key, fills)
  }

  def exists(family: String, bytes: Array[Byte], fills: Boolean): Boolean =
    get(family, bytes, fills) != null

  /** Puts a value; null: removes the key. */
  def write(family: String, bytes: Array[Byte], value: Array[Byte]): Unit = {
    val key = new StateKey(family, bytes)
    if (!isBackNow) {
      // RocksDB first: until then a fetch may read the old value and install it.
      try native.write(family, bytes, value)
      catch {
        case e: Throwable =>
          cache.synchronized(outdate(key))
          throw e
      }
      cache.synchronized {
        voidFetch(key)
        Option(entries.get(key)).foreach(cache.replace(_, value))
      }
    } else if (!writeBack.keep(key, value, clock.wallMs)) writeBack.through(key, value)
    if (isBackNow && cache.synchronized(cache.isLeavingFull)) writeBack.writeLeaving()
  }

  /** Whatever changes one key in RocksDB by another way, after what is here is written. */
  def around[A](family: String, bytes: Array[Byte])(change: => A): A =
    try writtenThrough(change)
    finally cache.synchronized(outdate(new StateKey(family, bytes)))

  /** The same for many keys of a family. */
  def aroundFamily[A](family: String)(change: => A): A =
    try writtenThrough(change)
    finally outdateIf(_.family == family)

  /** The same for keys that do not tell of which family they are. */
  def aroundAll[A](change: => A): A =
    try writtenThrough(change)
    finally outdateIf(_ => true)

  /** RocksDB has every write when this returns. */
  def writeOut(): Unit = if (isBackNow) writeBack.writeAll()

  /** The same, and every later write of this batch goes there at once. */
  def writeThrough(): Unit = {
    writeOut()
    isBackNow = false
  }

  /** The task has made its last write: what was hinted for this batch and not read is unused. */
  def endBatch(): Unit = {
    if (hasLost) {
      throw new Bug("writes_lost", s"writes to $store were dropped before they were committed")
    }
    if (opened) {
      writeOut()
      val (batch, counted) = cache.synchronized((hints.batchNow, tally.ofBatch()))
      hints.endBatch()
      isBackNow = isBack
      onBatch(batch, counted)
    }
  }

  /** Takes hints in small parts, as the task reads meanwhile. */
  private[prefetch] def hint(batch: HintBatch): Unit = hints.hint(batch)

  private[prefetch] def batchNow: Long = cache.synchronized(hints.batchNow)

  private[prefetch] def takeCounts(): PrefetchCounts = cache.synchronized {
    tally.take(run, store, bytes)
  }

  // All below under the cache's lock, but for the reads of RocksDB.

  private[prefetch] def nextWrite(): Option[FetchWork] = writeBack.next()

  private[prefetch] def nextChunk(credit: Long, threads: Int): Option[FetchWork] =
    hints.nextChunk(credit, threads)

  private[prefetch] def hasWork: Boolean = opened && (hints.areWaiting || !leaving.isEmpty)

  /** Keys that are being fetched. */
  private[prefetch] def landing: Int = hints.landing

  private[prefetch] def voidFetch(key: StateKey): Unit = hints.void(key)

  private[prefetch] def outdate(key: StateKey): Unit = {
    voidFetch(key)
    Option(entries.get(key)).foreach(cache.forget)
  }

  /** Takes the lock itself. */
  private def outdateIf(isMeant: StateKey => Boolean): Unit = {
    val all = cache.synchronized {
      hints.voidIf(isMeant)
      entries.values.toArray(Array.empty[Entry])
    }
    cache.forgetIf(all)(isMeant)
  }

  /** Writes that the change makes through here go to RocksDB at once: they are not kept. */
  private def writtenThrough[A](change: => A): A = {
    writeOut()
    val before = isBackNow
    isBackNow = false
    try change
    finally isBackNow = before
  }

  private def hit(entry: Entry): Unit = {
    tally.hits += 1
    if (entry.fetchedFor != null) {
      tally.read(entry.fetchedFor)
      entry.fetchedFor = null
    }
    val wasPinned = entry.isPinned
    if (wasPinned) {
      latestReadMs = math.max(latestReadMs, entry.atMs)
      cache.unpin(entry)
    }
    cache.renew(entry, nowMs)
    if (wasPinned) cache.trim()
  }

  private def awaited(key: StateKey, fetch: Fetch): Array[Byte] = {
    val start = clock.nanos
    fetch.await(clock, AwaitMs)
    val entry = cache.synchronized {
      tally.awaited(clock.nanos - start)
      val here = entries.get(key)
      if (here != null) {
        tally.waited += 1
        hit(here)
      }
      here
    }
    if (entry == null) readHere(key, fills = true) else entry.value
  }

  private def readHere(key: StateKey, fills: Boolean): Array[Byte] = {
    val start = clock.nanos
    val value = native.read(key.family, key.bytes)
    if (fills) {
      val tookNs = clock.nanos - start
      cache.synchronized {
        tally.missed(tookNs)
        // A fetch may have come in between, with the same value: this task alone writes.
        if (takesIn && !entries.containsKey(key)) {
          cache.insert(new Entry(this, key.family, key.bytes, value, nowMs))
        }
      }
    }
    value
  }

  /** Reads are as late as the clock, and not earlier than the rows that were read before. */
  private def nowMs: Long = math.max(clock.wallMs, latestReadMs)
}

private[prefetch] object StoreCache {

  /** How long a task waits for a fetch before it reads itself, which changes no answer. */
  val AwaitMs = 1000L
}
