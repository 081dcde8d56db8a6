// Scala because: it keeps writes of a task in memory, and threads of this JVM write them later.
package penstock.prefetch

import java.util.concurrent.locks.ReentrantLock

/**
 * Writes of one store that RocksDB has not: `unwritten` entries of the cache, some of which are
 * `leaving`, evicted and still to be written. RocksDB's class takes one write at a time, so all of
 * them are made under `writing`, which is taken before the cache's lock and never after it.
 *
 * A fetch in flight may have read RocksDB before any of these writes. So each of them voids what is
 * in flight of its key once it is made: from then on every fetch reads the new value.
 */
private[prefetch] final class WriteBack(store: StoreCache, native: NativeStore, cache: StateCache) {
  private val writing = new ReentrantLock

  /** Keeps a write in the cache; false if there is no room. */
  def keep(key: StateKey, value: Array[Byte], nowMs: Long): Boolean = cache.synchronized {
    val here = store.entries.get(key)
    val entry =
      if (here != null) here else new Entry(store, key.family, key.bytes, value, nowMs)
    store.voidFetch(key)
    entry.isDirty = true
    if (here != null) cache.replace(here, value)
    val isKept = here != null || (store.takesIn && cache.insert(entry))
    if (isKept) {
      store.unwritten.add(entry)
      store.tally.keptWrites += 1
    }
    isKept
  }

  /** Writes what the cache has no room for; a fetch may have come in since it was asked. */
  def through(key: StateKey, value: Array[Byte]): Unit = locked {
    try native.write(key.family, key.bytes, value)
    finally cache.synchronized(store.outdate(key))
  }

  /** On the task's thread, before what must see all writes. */
  def writeAll(): Unit = locked {
    cache.synchronized(store.unwritten.toArray(Array.empty[Entry])).foreach(write)
  }

  /** On the task's thread, if the pool is behind. */
  def writeLeaving(): Unit = locked {
    cache.synchronized(store.leaving.toArray(Array.empty[Entry])).foreach(write)
  }

  /** Something for the pool to write; under the cache's lock. */
  def next(): Option[FetchWork] =
    Option.when(!store.leaving.isEmpty && store.isOpen && !writing.isLocked)(() => writeOne())

  private def writeOne(): Unit = if (store.reads.tryEnter()) {
    try locked {
      val first = cache.synchronized {
        val all = store.leaving.iterator
        if (all.hasNext) Some(all.next()) else None
      }
      first.foreach(write)
    } finally store.reads.leave()
  }

  /** Under `writing`. The entry stays where reads find it until RocksDB has it. */
  private def write(entry: Entry): Unit = {
    val value = cache.synchronized(entry.value)
    try native.write(entry.family, entry.bytes, value)
    finally cache.synchronized(store.voidFetch(entry))
    cache.synchronized {
      // The task may have written another value meanwhile.
      if (entry.isDirty && (entry.value eq value)) {
        store.unwritten.remove(entry)
        cache.written(entry)
      }
    }
  }

  private def locked[A](body: => A): A = {
    writing.lock()
    try body
    finally writing.unlock()
  }
}
