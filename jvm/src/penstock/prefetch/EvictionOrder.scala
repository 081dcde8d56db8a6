// Scala because: it orders the entries of the cache that tasks read state from.
package penstock.prefetch

/**
 * Who is evicted next. Has all entries that may be evicted: a pinned one is taken out and added
 * again. The Python twin is `penstock.prefetch.order`.
 */
private[penstock] trait EvictionOrder {
  def add(entry: Entry): Unit

  /** It was read or hinted; its time is set already, and never to an earlier one. */
  def renew(entry: Entry): Unit

  def remove(entry: Entry): Unit

  /** The next to leave, which stays until it is removed; null if there is none. */
  def victim(): Entry
}

private[penstock] object EvictionOrder {
  def named(name: String): EvictionOrder = name match {
    case "lru" => new LruOrder
    case "clock" => new ClockOrder
    case _ => new TimestampOrder
  }
}

/**
 * The oldest time first; of the same time, the one renewed longest ago. A heap, because hints come
 * in any order of their times. Times only grow, so an entry is moved to its place when it has come
 * to the top, and a read moves nothing.
 */
private[penstock] final class TimestampOrder extends EvictionOrder {
  private var heap = new Array[Entry](1024)
  private var size = 0
  private var turns = 0

  override def add(entry: Entry): Unit = {
    if (size == heap.length) heap = java.util.Arrays.copyOf(heap, size * 2)
    renew(entry)
    settle(entry)
    size += 1
    siftUp(size - 1, entry)
  }

  override def renew(entry: Entry): Unit = {
    turns += 1
    entry.turn = turns
  }

  override def remove(entry: Entry): Unit = {
    val index = entry.heapIndex
    size -= 1
    val last = heap(size)
    heap(size) = null
    entry.heapIndex = -1
    if (last ne entry) {
      siftUp(index, last)
      siftDown(last.heapIndex, last)
    }
  }

  override def victim(): Entry = {
    while (size > 0 && isRenewed(heap(0))) {
      val entry = heap(0)
      settle(entry)
      siftDown(0, entry)
    }
    if (size == 0) null else heap(0)
  }

  private def isRenewed(entry: Entry): Boolean =
    entry.turn != entry.orderedTurn || entry.atMs != entry.orderedAtMs

  private def settle(entry: Entry): Unit = {
    entry.orderedAtMs = entry.atMs
    entry.orderedTurn = entry.turn
  }

  // The difference of turns stays right when their count overflows.
  private def isBefore(a: Entry, b: Entry): Boolean =
    a.orderedAtMs < b.orderedAtMs ||
      (a.orderedAtMs == b.orderedAtMs && a.orderedTurn - b.orderedTurn < 0)

  private def put(entry: Entry, index: Int): Unit = {
    heap(index) = entry
    entry.heapIndex = index
  }

  private def siftUp(from: Int, entry: Entry): Unit = {
    var index = from
    while (index > 0 && isBefore(entry, heap((index - 1) / 2))) {
      put(heap((index - 1) / 2), index)
      index = (index - 1) / 2
    }
    put(entry, index)
  }

  private def siftDown(from: Int, entry: Entry): Unit = {
    var index = from
    var child = smallerChild(index)
    while (child < size && isBefore(heap(child), entry)) {
      put(heap(child), index)
      index = child
      child = smallerChild(index)
    }
    put(entry, index)
  }

  private def smallerChild(index: Int): Int = {
    val left = 2 * index + 1
    if (left + 1 < size && isBefore(heap(left + 1), heap(left))) left + 1 else left
  }
}

/** A ring of entries with a head, whose last is before its first. */
private[penstock] sealed abstract class RingOrder extends EvictionOrder {
  protected val head = new Entry(null, "", Array.emptyByteArray, null, 0)
  head.before = head
  head.after = head

  protected def link(entry: Entry, before: Entry): Unit = {
    entry.after = before
    entry.before = before.before
    entry.before.after = entry
    before.before = entry
  }

  protected def unlink(entry: Entry): Unit = {
    entry.before.after = entry.after
    entry.after.before = entry.before
    entry.before = null
    entry.after = null
  }
}

/** What was read or hinted longest ago first, whatever its time. */
private[penstock] final class LruOrder extends RingOrder {
  override def add(entry: Entry): Unit = link(entry, head)

  override def renew(entry: Entry): Unit = {
    unlink(entry)
    link(entry, head)
  }

  override def remove(entry: Entry): Unit = unlink(entry)

  override def victim(): Entry = if (head.after eq head) null else head.after
}

/** A hand goes round; who was read or hinted since it last came by stays. */
private[penstock] final class ClockOrder extends RingOrder {
  private var hand = head

  override def add(entry: Entry): Unit = {
    entry.isReferenced = true
    link(entry, hand)
  }

  override def renew(entry: Entry): Unit = entry.isReferenced = true

  override def remove(entry: Entry): Unit = {
    if (hand eq entry) hand = entry.after
    unlink(entry)
  }

  override def victim(): Entry =
    if (head.after eq head) null
    else {
      while ((hand eq head) || hand.isReferenced) {
        hand.isReferenced = false
        hand = hand.after
      }
      hand
    }
}
