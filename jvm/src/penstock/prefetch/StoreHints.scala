// Scala because: it takes hints for the state that tasks of this JVM are about to read.
package penstock.prefetch

import penstock.Clock

/**
 * The hints of one store: those that wait, what is fetched for them, and whether it was read. All
 * under the cache's lock, which methods take where they say so.
 *
 * @param readTo how far the batch under way reads each stream of the log
 * @param hintOnward takes the hints that follow from values that were fetched
 */
private[prefetch] final class StoreHints(
    store: StoreCache,
    native: NativeStore,
    cache: StateCache,
    clock: Clock,
    readTo: () => Map[String, Long],
    hintOnward: HintBatch => Unit) {
  import StoreHints._

  private val buffer = new HintBuffer

  /** The batch under way, or the next one; those before it are committed. */
  private var batch = 0L
  private var openedNs = Long.MinValue

  /** How far the last committed batch had read each stream. */
  private var passed = Map.empty[String, Long]
  private var offsetMs = Option.empty[Long]

  /** Keys that are being fetched, void ones among them. */
  var landing = 0

  def batchNow: Long = batch

  /** RocksDB is open from now on: only now can be fetched what was hinted before. */
  def opened(): Unit = {
    openedNs = clock.nanos
    kick()
  }

  /** A task has loaded the version that a batch begins with: another attempt of one it may be. */
  def begin(number: Long): Unit = batch = number

  def areWaiting: Boolean = buffer.waitingSize > 0

  /** Takes the lock, for a few keys at a time. */
  def hint(hinted: HintBatch): Unit = {
    val offset = cache.synchronized {
      if (!store.isOver) store.tally.suppressed += hinted.suppressed
      offsetOf(hinted)
    }
    hinted.keys.indices.grouped(HintsAtOnce).foreach { indices =>
      val here = cache.synchronized {
        val entries = if (store.isOver) Nil else indices.flatMap(hint(hinted, _, offset))
        kick()
        entries
      }
      here.foreach { entry =>
        FollowUp.hint(
          hinted.followUp, entry, entry.value, entry.atMs - offset, hinted.due)(hintOnward)
      }
    }
  }

  /** The fetch to wait for, or null: then the task reads itself, and nobody needs to fetch. */
  def look(key: StateKey): Fetch = {
    val fetch = buffer.flying(key)
    if (fetch == null) buffer.withdraw(key).foreach(cache.withdrawn)
    fetch
  }

  def void(key: StateKey): Unit = buffer.void(key)

  def voidIf(isMeant: StateKey => Boolean): Unit = buffer.voidIf(isMeant)

  def kick(): Unit = if (store.hasWork) cache.workArrived(store)

  def nextChunk(credit: Long, threads: Int): Option[FetchWork] =
    if (!store.isOpen || buffer.waitingSize == 0) None
    else {
      // Enough for every thread before any has many.
      val share = math.max(1, buffer.waitingSize / (2 * threads))
      val keysMax = math.min(math.min(share.toLong, credit), native.fetchKeysMax.toLong).toInt
      val fetches = buffer.take(keysMax)
      val readySinceNs = math.max(openedNs, cache.creditSinceNs)
      fetches.foreach(fetch => fetch.readySinceNs = math.max(fetch.readySinceNs, readySinceNs))
      cache.took(fetches)
      landing += fetches.size
      try Some(new FetchChunk(this, store.reads, native, clock, fetches))
      catch {
        case e: Throwable =>
          land(fetches, None, 0)
          throw e
      }
    }

  /**
   * Takes in what a fetch has read; null values: the read failed, or was not made. Takes the lock.
   * Whatever happens, a task that waits for the fetch goes on.
   */
  def land(fetches: Seq[Fetch], values: Option[Array[Array[Byte]]], tookNs: Long): Unit = {
    var inTime = Set.empty[Fetch]
    try cache.synchronized {
      val nowNs = clock.nanos
      cache.landed(fetches.size)
      landing -= fetches.size
      fetches.foreach(buffer.landed)
      inTime = fetches.filterNot(fetch => fetch.isVoid || isOver(fetch.due)).toSet
      values.foreach { _ =>
        fetches.foreach { fetch =>
          store.tally.fetched(tookNs / fetches.size, nowNs - fetch.readySinceNs)
        }
      }
      fetches.zipWithIndex.foreach { case (fetch, index) =>
        if (values.isEmpty) store.tally.dropped += 1
        else if (!fetch.isVoid) install(fetch, values.get(index))
      }
    } finally fetches.foreach(_.end())
    for (read <- values; (fetch, index) <- fetches.zipWithIndex if inTime(fetch)) {
      val atMs = fetch.atMs - offsetMs.getOrElse(0L)
      FollowUp.hint(fetch.followUp, fetch, read(index), atMs, fetch.due)(hintOnward)
    }
  }

  /** A batch is over: what was hinted for it and is unread is unused. Takes the lock in turns. */
  def endBatch(): Unit = {
    val (unread, waiting) = cache.synchronized {
      batch += 1
      passed = readTo()
      (store.unread.toArray(Array.empty[Entry]), buffer.waitingNow)
    }
    unread.grouped(StateCache.AtOnce).foreach(some => cache.synchronized(some.foreach(judge)))
    drop(waiting)(fetch => isOver(fetch.due))
  }

  /** No hint waits any more. Takes the lock in turns. */
  def dropAll(): Unit = drop(cache.synchronized(buffer.waitingNow))(_ => true)

  private def drop(fetches: Array[Fetch])(isMeant: Fetch => Boolean): Unit =
    fetches.grouped(StateCache.AtOnce).foreach { some =>
      cache.synchronized {
        some.filter(fetch => buffer.isWaiting(fetch) && isMeant(fetch)).foreach { fetch =>
          buffer.withdraw(fetch)
          cache.withdrawn(fetch)
          store.tally.dropped += 1
        }
      }
    }

  private def isOver(due: HintExpiry): Boolean = due.isOver(batch, passed)

  private def judge(entry: Entry): Unit = if (entry.isPinned && isOver(entry.due)) {
    leftUnread(entry.fetchedFor)
    entry.fetchedFor = null
    cache.unpin(entry)
    cache.trim()
  }

  private def install(fetch: Fetch, value: Array[Byte]): Unit =
    if (store.takesIn && !store.entries.containsKey(fetch) && !cache.isLeavingFull) {
      val entry = new Entry(store, fetch.family, fetch.bytes, value, fetch.atMs)
      val isInTime = !isOver(fetch.due)
      entry.due = fetch.due
      entry.isPinned = isInTime
      if (!isInTime) leftUnread(fetch.candidate) else entry.fetchedFor = fetch.candidate
      if (!cache.insert(entry)) store.tally.dropped += 1
      else if (isInTime) { store.unread.add(entry); () }
    }

  private def leftUnread(candidate: Candidate): Unit =
    if (candidate != null) store.tally.leftUnread(candidate)

  /** The entry, if the key is cached already. */
  private def hint(hinted: HintBatch, index: Int, offset: Long): Option[Entry] = {
    val (candidate, bytes, due) = (hinted.candidate, hinted.keys(index), hinted.due)
    val fetch = new Fetch(
      hinted.family, bytes, candidate, hinted.atMs(index) + offset, due, clock.nanos, hinted.followUp)
    val isLate = isOver(due)
    val here = if (isLate) null else store.entries.get(fetch)
    store.tally.hintedBy(candidate, bytes.length)
    if (isLate) store.tally.late += 1
    else if (here != null) {
      here.due = if (here.isPinned) here.due.orLater(due) else due
      cache.renew(here, fetch.atMs)
      cache.pin(here)
    } else if (!buffer.renew(fetch)) {
      if (cache.admit(fetch)) buffer.add(fetch) else store.tally.dropped += 1
    }
    Option(here)
  }

  /**
   * Event times of different queries cannot be compared, so each store has an offset from its event
   * time to the clock's: such that the latest of its first hints is now.
   */
  private def offsetOf(hinted: HintBatch): Long = {
    if (offsetMs.isEmpty) offsetMs = hinted.atMs.maxOption.map(clock.wallMs - _)
    offsetMs.getOrElse(0)
  }
}

private object StoreHints {

  /** Keys of hints taken in one turn of the lock. */
  val HintsAtOnce = 32
}
