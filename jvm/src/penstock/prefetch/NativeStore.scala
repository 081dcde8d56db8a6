// Scala because: it is the view that the cache has of Spark's RocksDB class.
package penstock.prefetch

/** A RocksDB without a cache. Reads may come from several threads, also beside a write. */
trait NativeStore {

  /** The value, or null if there is none. */
  def read(family: String, key: Array[Byte]): Array[Byte]

  /** The same of several keys, in their order. */
  def readAll(family: String, keys: Array[Array[Byte]]): Array[Array[Byte]]

  /** Puts the value; null: removes the key. */
  def write(family: String, key: Array[Byte], value: Array[Byte]): Unit

  /** How many keys one fetch should read at most: a task that needs one waits for all. */
  def fetchKeysMax: Int
}
