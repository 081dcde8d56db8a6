package penstock.commit

import scala.collection.mutable

/** A file of a snapshot in the log: the entries of its parts, in order, and what they come to. */
final case class SnapshotFile(path: String, entries: Seq[Long], bytes: Long, crc32: Long)

/**
 * A snapshot of one store that is in the log.
 *
 * @param piece the piece of its batch that it is the state of
 * @param base the last entry of the snapshot whose files it has taken over, 0 for none
 */
final case class Snapshot(
    folder: String,
    batch: Long,
    piece: String,
    base: Long,
    files: Seq[SnapshotFile]) {
  def last: Long = files.flatMap(_.entries).maxOption.getOrElse(0L)
}

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
    val there = newest.get(snapshot.folder)
    val isNewer = there.forall { known =>
      snapshot.batch > known.batch || (snapshot.batch == known.batch && due(snapshot.folder))
    }
    if (isNewer && there.fold(0L)(_.last) == snapshot.base) {
      newest(snapshot.folder) = snapshot
      due += snapshot.folder
    }
  }

  /** Those for the marker of the batch to name; of the batch itself only what counts of it. */
  def take(batch: Long, counts: String => Boolean): Seq[Snapshot] = {
    val found = due.toSeq.sorted.map(newest).filter(_.batch <= batch)
    due --= found.map(_.folder)
    found.filter(snapshot => snapshot.batch < batch || counts(snapshot.piece))
  }
}
