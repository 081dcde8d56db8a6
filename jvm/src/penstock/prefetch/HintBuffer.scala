// Scala because: it has the keys that fetching threads and tasks of this JVM share.
package penstock.prefetch

import java.util.{HashMap, LinkedHashMap}

import scala.jdk.CollectionConverters._

import penstock.Clock

/**
 * A hinted key on its way into the cache. Its fields are under the cache's lock, but for `isOver`,
 * which is under its own: a task waits for it.
 */
private[prefetch] final class Fetch(
    family: String,
    bytes: Array[Byte],
    val candidate: Candidate,
    var atMs: Long,
    var due: HintExpiry,
    hintedNs: Long,
    var followUp: Option[FollowUp] = None)
    extends StateKey(family, bytes) {

  /** Its key was written after the read may have begun: what was read must not be installed. */
  var isVoid = false

  /** From when on nothing but a thread was missing to read it. */
  var readySinceNs: Long = hintedNs
  private var isOver = false

  def end(): Unit = synchronized {
    isOver = true
    notifyAll()
  }

  /** Returns when the read is over, for good or ill, or the limit is. */
  def await(clock: Clock, limitMs: Long): Unit = {
    clock.await(this, limitMs)(isOver)
    ()
  }
}

/**
 * The hints of one store that are not in the cache yet, in two parts: those that wait for a thread,
 * and those in flight. A key is in one of them at most. Under the cache's lock.
 */
private[prefetch] final class HintBuffer {
  private val waiting = new LinkedHashMap[StateKey, Fetch]()
  private val inFlight = new HashMap[StateKey, Fetch]()

  def waitingSize: Int = waiting.size

  def inFlightSize: Int = inFlight.size

  def flying(key: StateKey): Fetch = inFlight.get(key)

  /** Whether the key is here already; if so, the latest time counts. */
  def renew(again: Fetch): Boolean = {
    val here = Option(waiting.get(again)).orElse(Option(inFlight.get(again)))
    here.foreach { fetch =>
      fetch.atMs = math.max(fetch.atMs, again.atMs)
      fetch.due = fetch.due.orLater(again.due)
      fetch.followUp = fetch.followUp.orElse(again.followUp)
    }
    here.isDefined
  }

  def add(fetch: Fetch): Unit = { waiting.put(fetch, fetch); () }

  /** The first that wait, of one family, now in flight. */
  def take(keysMax: Int): Seq[Fetch] = {
    val first = waiting.values.asScala.headOption
    val taken = waiting.values.asScala.iterator
      .takeWhile(fetch => first.exists(_.family == fetch.family))
      .take(keysMax)
      .toVector
    taken.foreach { fetch =>
      waiting.remove(fetch)
      inFlight.put(fetch, fetch)
    }
    taken
  }

  /** The key needs no fetch any more; returns the one that waited. */
  def withdraw(key: StateKey): Option[Fetch] = Option(waiting.remove(key))

  /** What was read of a key in flight is out of date; it may be fetched anew at once. */
  def void(key: StateKey): Unit = Option(inFlight.remove(key)).foreach(_.isVoid = true)

  def voidIf(isMeant: StateKey => Boolean): Unit = {
    val meant = inFlight.values.asScala.filter(isMeant).toVector
    meant.foreach(void)
  }

  /** The fetch is over; of one that was voided, another may be in flight by now. */
  def landed(fetch: Fetch): Unit = if (inFlight.get(fetch) eq fetch) { inFlight.remove(fetch); () }

  def isWaiting(fetch: Fetch): Boolean = waiting.get(fetch) eq fetch

  /** All that wait. */
  def waitingNow: Array[Fetch] = waiting.values.toArray(Array.empty[Fetch])
}
