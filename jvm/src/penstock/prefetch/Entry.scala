// Scala because: state is cached as the bytes that Spark's state stores hand over.
package penstock.prefetch

import java.util.Arrays

import scala.util.hashing.MurmurHash3

/** A key within a store. The bytes are kept as they are given, and nobody may change them. */
private[penstock] class StateKey(val family: String, val bytes: Array[Byte]) {
  private val hash = MurmurHash3.bytesHash(bytes, family.hashCode)

  final override def hashCode: Int = hash

  final override def equals(other: Any): Boolean = other match {
    case key: StateKey =>
      hash == key.hash && family == key.family && Arrays.equals(bytes, key.bytes)
    case _ => false
  }
}

/** One value of a store, or the knowledge that it has none. All of it is under the cache's lock. */
private[penstock] final class Entry(
    val store: StoreCache,
    family: String,
    bytes: Array[Byte],
    var value: Array[Byte],
    var atMs: Long)
    extends StateKey(family, bytes) {

  /** Hinted and not read yet: in no order of eviction. */
  var isPinned = false

  /** Not in RocksDB as it is here. */
  var isDirty = false

  /** In the eviction buffer: it leaves as soon as it is written. */
  var isLeaving = false

  /** Who hinted what was then fetched; null if it was not fetched, or is judged already. */
  var fetchedFor: Candidate = _

  /** When it is unused if it was not read by then. */
  var due: HintExpiry = HintExpiry.Never

  // For the order of eviction: where it is there, and what it was when it was put there.
  var heapIndex = -1
  var turn = 0
  var orderedAtMs = 0L
  var orderedTurn = 0
  var before: Entry = _
  var after: Entry = _
  var isReferenced = false

  def cost: Long = Entry.cost(bytes, value)
}

private[penstock] object Entry {

  /** Of the objects around the bytes: entry, node of the map, heads of two arrays. */
  val OverheadBytes = 120L

  def cost(key: Array[Byte], value: Array[Byte]): Long =
    OverheadBytes + key.length + (if (value == null) 0 else value.length)
}
