// Scala because: it turns the value of one state key into the keys that are read after it.
package penstock.prefetch

import scala.util.control.NonFatal

/**
 * Reads that depend on another read: a join reads how many rows a key has, then each of them. It
 * travels with the hints of the first read, and is asked when that has been fetched.
 */
trait FollowUp extends Serializable {

  /**
   * Hints for what is read next.
   *
   * @param key as it was hinted
   * @param value as `RocksDB.get` returns it; null if the store has none
   * @param due of the hint for the key: what is read next is read for the same rows
   */
  def after(key: Array[Byte], value: Array[Byte], atMs: Long, due: HintExpiry): Option[HintBatch]
}

private[prefetch] object FollowUp {

  /**
   * Hints what follows from a value, if anything does. Never throws. Not to be called under the
   * cache's lock: the keys may be of another store, and take time to make.
   */
  def hint(
      followUp: Option[FollowUp],
      key: StateKey,
      value: Array[Byte],
      atMs: Long,
      due: HintExpiry)(onward: HintBatch => Unit): Unit =
    try followUp.flatMap(_.after(key.bytes, value, atMs, due)).foreach(onward)
    catch { case NonFatal(_) => }
}
