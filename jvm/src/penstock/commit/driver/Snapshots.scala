// Scala because: the release queue asks it, under its lock, which snapshots a marker names.
package penstock.commit.driver

import scala.collection.mutable

import penstock.wire.Snapshot

/**
 * The snapshots that a run's writers have appended, on the driver: the newest of each store, and
 * whether a marker is still to name it. Begins with those that the log had before. Not safe for
 * threads.
 */
final class Snapshots(before: Seq[Snapshot]) {
  private val newest = mutable.Map.from(before.map(snapshot => snapshot.folder -> snapshot))
  private val due = mutable.Set.empty[String]

  /** What the next snapshot of the store may share. */
  def of(folder: String): Option[Snapshot] = newest.get(folder)

  /**
   * One that is not newer, or shares files of another than the newest, is passed over: what it
   * shares may be gone by the time it is named. A later attempt at a batch replaces an earlier one.
   */
  def appended(snapshot: Snapshot): Unit = {
    val newestOfStore = newest.get(snapshot.folder)
    val isNewer = newestOfStore.forall { known =>
      snapshot.batch > known.batch || (snapshot.batch == known.batch && due(snapshot.folder))
    }
    if (isNewer && newestOfStore.fold(0L)(_.last) == snapshot.base) {
      newest(snapshot.folder) = snapshot
      due += snapshot.folder
    }
  }

  /** Those for the marker of the batch to name; of the batch itself only those of current writes. */
  def take(batch: Long, isCurrent: String => Boolean): Seq[Snapshot] = {
    val named = due.toSeq.sorted.map(newest).filter(_.batch <= batch)
    due --= named.map(_.folder)
    named.filter(snapshot => snapshot.batch < batch || isCurrent(snapshot.piece))
  }
}
