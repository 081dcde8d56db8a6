// Scala because: it reads RocksDB on a thread of this JVM, beside the task.
package penstock.prefetch

import scala.util.control.NonFatal

import penstock.Clock

/**
 * Some keys of one family that a thread fetches. Its steps are `begin`, `read`, `end`; `perform`
 * does them all. Whatever happens, `end` is done, as a task may wait for it. A read that fails is
 * dropped: the task's own read decides.
 */
private[prefetch] final class FetchChunk(
    hints: StoreHints,
    reads: NativeReads,
    native: NativeStore,
    clock: Clock,
    val fetches: Seq[Fetch])
    extends FetchWork {

  private var values = Option.empty[Array[Array[Byte]]]
  private var isInside = false
  private var tookNs = 0L

  override def perform(): Unit =
    try if (begin()) read()
    finally end()

  /** Whether RocksDB may be read. */
  def begin(): Boolean = {
    isInside = reads.tryEnter()
    isInside
  }

  def read(): Unit = {
    val start = clock.nanos
    try values = Some(native.readAll(fetches.head.family, fetches.map(_.bytes).toArray))
    catch { case NonFatal(_) => values = None }
    tookNs = clock.nanos - start
  }

  /** What was read is taken in before RocksDB is left: whoever shuts it forgets that too. */
  def end(): Unit =
    try hints.land(fetches, values, tookNs)
    finally if (isInside) reads.leave()
}
