// Scala because: the release queue calls it on threads of the driver's JVM, for every batch.
package penstock.commit.driver

import penstock.wire.{FileEntry, Snapshot}

/** Where what is released goes. One method per effect; each may be called again after a failure. */
trait Store {

  /** The store in words, for the error that names who must act. */
  def name: String
  def putOffsets(batch: Long, bytes: Array[Byte]): Unit
  def putMarker(batch: Long, commit: Array[Byte], named: Named): Unit
  def putCommit(batch: Long, bytes: Array[Byte]): Unit
  /** Copies a marked batch, of which the writers of its state may have copied some files. */
  def copy(batch: Long, placed: PlacedFiles): Unit
  def delete(path: String): Unit

  /** The batch is in the location, and the release knows: no method is called with it again. */
  def forget(batch: Long): Unit
}

/** The files of state that their writers have copied to the location, by their paths. */
trait PlacedFiles {
  def has(path: String): Boolean

  /** Returns when it has them all, or the limit is over. */
  def await(paths: Seq[String], limitMs: Long): Unit
}

/**
 * What a marker names of a batch's state, by piece, and snapshots, where the log is to keep these; the
 * bytes of `offsets/N`, if the marker is to make them durable.
 */
final case class Named(
    pieces: Map[String, Seq[FileEntry]],
    snapshots: Option[Seq[Snapshot]],
    offsets: Option[Array[Byte]]) {

  def files: Seq[FileEntry] = pieces.toSeq.sortBy(_._1).flatMap(_._2)
}
