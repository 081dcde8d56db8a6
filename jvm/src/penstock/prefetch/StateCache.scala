// Scala because: it holds the state of all stores of an executor, between its tasks and RocksDB.
package penstock.prefetch

import java.util.LinkedHashSet

import scala.collection.mutable

import penstock.Clock

/**
 * The bytes that all stores of a JVM share, and who leaves when they are used up. It is the lock of
 * all that is cached: held for a few look-ups at a time, never while RocksDB is read or written.
 *
 * {{{
 * an entry   is in                     until
 * resident   the order of eviction     it is evicted; forgotten, if RocksDB has its value
 * pinned     its store's `unread`      it is read, or what it was hinted for is over: resident
 * unwritten  its store's `unwritten`,  RocksDB has its value; beside one of the others
 * leaving    its store's `leaving`     it is written: forgotten; or read, hinted or put: resident
 *
 * a fetch    is in                     until
 * waiting    its store's HintBuffer    the task reads or the batch ends: withdrawn; or a thread
 *                                      takes it: in flight
 * in flight  its store's HintBuffer    it has landed: its value is an entry, pinned; or its key is
 *                                      written: void, and what it has read is thrown away
 * }}}
 *
 * @param onWork called, under the lock, when there may be something to fetch or to write
 */
private[prefetch] final class StateCache(
    order: EvictionOrder,
    val bytesMax: Long,
    clock: Clock,
    onWork: () => Unit) {
  import StateCache._

  private val stores = mutable.ArrayBuffer.empty[StoreCache]

  /** The stores that have something to fetch or to write, in the order in which they get a turn. */
  private val working = new LinkedHashSet[StoreCache]()
  private var held = 0L
  private var pinned = 0L
  private var leaving = 0L
  private var reserved = 0L
  private var waitingBytes = 0L
  private var inFlight = 0
  private var usualCost = 512L

  /** Since when there has been room for what is fetched: a fetch begun now waited for it till then. */
  private[prefetch] var creditSinceNs = Long.MinValue
  private var hasNoCredit = false

  /** Bytes of entries, and of what was reserved. */
  def bytes: Long = synchronized(held + leaving + reserved)

  /** Stores whose run goes on. */
  def storesOpen: Int = synchronized(stores.count(!_.isRetired))

  /** Sets bytes aside for something else; returns whether there was room. */
  def reserve(bytes: Long): Boolean = synchronized {
    val fits = reserved + bytes <= bytesMax / 4 && makeRoom(bytes)
    if (fits) reserved += bytes
    fits
  }

  def giveBack(bytes: Long): Unit = synchronized(reserved -= bytes)

  private[prefetch] def add(store: StoreCache): Unit = synchronized(stores += store)

  private[prefetch] def remove(store: StoreCache): Unit = synchronized {
    stores -= store
    working.remove(store)
    ()
  }

  /** Forgets entries of one store, a few at a time: nobody else waits for all of them. */
  def forgetIf(entries: Array[Entry])(isMeant: Entry => Boolean): Unit =
    entries.grouped(AtOnce).foreach { some =>
      synchronized(some.filter(entry => isHere(entry) && isMeant(entry)).foreach(forget))
    }

  // All below under the lock, which the caller has.

  /** Takes a new entry in, if there is room; what is pinned makes none. */
  def insert(entry: Entry): Boolean = {
    val fits = makeRoom(entry.cost)
    if (fits) {
      held += entry.cost
      usualCost += (entry.cost - usualCost) / 16
      entry.store.entries.put(entry, entry)
      entry.store.bytes += entry.cost
      if (entry.isPinned) pinned += entry.cost else order.add(entry)
    }
    fits
  }

  /** Forgets an entry. */
  def forget(entry: Entry): Unit = {
    entry.store.entries.remove(entry)
    release(entry)
  }

  /** One that was about to leave and finds no room to stay is not pinned: it still leaves. */
  def pin(entry: Entry): Unit = if (!entry.isPinned && !entry.isLeaving) {
    order.remove(entry)
    entry.isPinned = true
    pinned += entry.cost
    entry.store.unread.add(entry)
  }

  /** Hints that wait for room may be fetched, if there is room for some of them now. */
  def unpin(entry: Entry): Unit = if (entry.isPinned) {
    entry.isPinned = false
    pinned -= entry.cost
    entry.store.unread.remove(entry)
    order.add(entry)
    if (waitingBytes > 0 && credit >= math.min(CreditToWake, creditMax / 4 + 1)) onWork()
  }

  /** What has outgrown the budget while it was pinned, and could not leave, leaves. */
  def trim(): Unit = {
    makeRoom(0)
    ()
  }

  /** A read or a hint: the latest time counts, and what was to leave stays. */
  def renew(entry: Entry, atMs: Long): Unit = {
    entry.atMs = math.max(entry.atMs, atMs)
    if (entry.isLeaving) stay(entry)
    else if (!entry.isPinned) order.renew(entry)
  }

  /**
   * Gives an entry another value. Where that has outgrown the budget and nobody else can make room,
   * the entry is forgotten, unless RocksDB does not have the value.
   */
  def replace(entry: Entry, value: Array[Byte]): Unit = {
    val growth = Entry.cost(entry.bytes, value) - entry.cost
    entry.value = value
    entry.store.bytes += growth
    if (entry.isLeaving) leaving += growth else held += growth
    if (entry.isPinned) pinned += growth
    if (entry.isLeaving) stay(entry)
    val fits = makeRoom(0)
    if (!fits && isHere(entry) && !entry.isDirty) forget(entry)
  }

  /** Whether so many entries wait to be written that no more may be added to them. */
  def isLeavingFull: Boolean = leaving > bytesMax / LeavingShare

  def written(entry: Entry): Unit = {
    entry.isDirty = false
    if (entry.isLeaving || entry.store.isRetired) forget(entry)
  }

  /** Takes note of a hint; returns false if too many wait. */
  def admit(fetch: Fetch): Boolean = {
    val fits = waitingBytes + hintCost(fetch) <= math.max(WaitingMin, bytesMax / WaitingShare)
    if (fits) waitingBytes += hintCost(fetch)
    fits
  }

  def withdrawn(fetch: Fetch): Unit = waitingBytes -= hintCost(fetch)

  def took(fetches: Seq[Fetch]): Unit = {
    fetches.foreach(withdrawn)
    inFlight += fetches.size
  }

  def landed(fetches: Int): Unit = inFlight -= fetches

  /** How many more keys may be fetched: what is hinted and unread must fit into the budget. */
  private def credit: Long = (bytesMax - reserved - pinned) / usualCost - inFlight

  private def creditMax: Long = bytesMax / usualCost

  /** A store has something to fetch or to write. */
  def workArrived(store: StoreCache): Unit = {
    working.add(store)
    onWork()
  }

  /** What is hinted and unread has become less: what waits for room may be fetched. */
  def roomCame(): Unit = onWork()

  /** The next piece of work for a thread beside the tasks, store by store. */
  def nextWork(threads: Int): Option[FetchWork] = synchronized {
    val credit = noteCredit()
    var work = Option.empty[FetchWork]
    var turns = working.size
    while (work.isEmpty && turns > 0) {
      turns -= 1
      val store = working.iterator.next()
      working.remove(store)
      try work = store.nextWrite().orElse(if (credit > 0) store.nextChunk(credit, threads) else None)
      finally if (store.hasWork) working.add(store)
    }
    noteCredit()
    work
  }

  private def noteCredit(): Long = {
    val now = credit
    if (now > 0 && hasNoCredit) creditSinceNs = clock.nanos
    hasNoCredit = now <= 0
    now
  }

  private def stay(entry: Entry): Unit = {
    entry.isLeaving = false
    entry.store.leaving.remove(entry)
    leaving -= entry.cost
    held += entry.cost
    order.add(entry)
    makeRoom(0)
    ()
  }

  private def makeRoom(bytes: Long): Boolean = {
    var victim = if (isFull(bytes)) order.victim() else null
    while (victim != null) {
      evict(victim)
      victim = if (isFull(bytes)) order.victim() else null
    }
    !isFull(bytes)
  }

  private def isHere(entry: Entry): Boolean = entry.store.entries.get(entry) eq entry

  private def isFull(bytes: Long): Boolean = held + reserved + bytes > bytesMax

  private def evict(entry: Entry): Unit = {
    entry.store.tally.evictions += 1
    if (!entry.isDirty) forget(entry)
    else {
      order.remove(entry)
      held -= entry.cost
      leaving += entry.cost
      entry.isLeaving = true
      entry.store.leaving.add(entry)
      workArrived(entry.store)
    }
  }

  /** Whoever still has the entry in hand finds it in no place. */
  private def release(entry: Entry): Unit = {
    entry.store.bytes -= entry.cost
    if (entry.isLeaving) {
      entry.store.leaving.remove(entry)
      leaving -= entry.cost
    } else {
      held -= entry.cost
      if (entry.isPinned) {
        pinned -= entry.cost
        entry.store.unread.remove(entry)
      } else order.remove(entry)
    }
    entry.store.unwritten.remove(entry)
    entry.isLeaving = false
    entry.isPinned = false
    entry.isDirty = false
  }

  private def hintCost(fetch: Fetch): Long = Entry.cost(fetch.bytes, null)

  /** What must always hold; for tests. */
  def check(): Unit = synchronized {
    def broken(rule: String) = throw new IllegalStateException(s"the cache is broken: $rule")
    var (inOrder, onPin, onLeave) = (0L, 0L, 0L)
    stores.foreach(_.entries.values.forEach { entry =>
      if (entry.isLeaving) onLeave += entry.cost else inOrder += entry.cost
      if (entry.isPinned) onPin += entry.cost
      if (entry.isLeaving && !entry.isDirty) broken("a clean entry waits to be written")
    })
    val ofStores = stores.map(_.bytes).sum
    if (ofStores != inOrder + onLeave) broken(s"$ofStores bytes counted by stores")
    if (held != inOrder) broken(s"$held bytes counted, $inOrder held")
    if (pinned != onPin) broken(s"$pinned bytes counted as pinned, $onPin are")
    if (leaving != onLeave) broken(s"$leaving bytes counted as leaving, $onLeave are")
    if (inFlight != stores.map(_.landing).sum) broken(s"$inFlight keys counted as in flight")
    if (stores.exists(store => store.hasWork && !working.contains(store))) broken("work that nobody is told of")
    val isOver = held + reserved > bytesMax && order.victim() != null
    if (isOver) broken(s"$held bytes held of $bytesMax")
  }
}

private[prefetch] object StateCache {

  /** How many entries or hints are handled in one turn of the lock. */
  val AtOnce = 256

  /** Of the budget, which may so be exceeded: entries that wait to be written. */
  val LeavingShare = 8

  /** Of the budget, beside it: keys of hints that wait. */
  val WaitingShare = 4
  val WaitingMin = 64L << 10

  /** A thread is not woken for fewer keys, where more can be waited for. */
  val CreditToWake = 16L
}

/** Something to do beside the tasks, on a thread of the pool. */
private[prefetch] trait FetchWork {
  def perform(): Unit
}
