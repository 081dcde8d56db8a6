// Scala because: every file that a task's state store opens or writes is told apart by its path.
package penstock.checkpoint.location

import org.apache.hadoop.fs.Path

/**
 * A file of a state store that belongs to one version: `state/OPERATOR/PARTITION[/STORE]/` and then
 * `VERSION[_ID].changelog` or `.zip`, or the checksum file of one of these.
 *
 * @param piece the unique id of the version where it has one (format 2), else its path (format 1)
 * @param relative the path from the checkpoint's root
 */
final case class StateFile(
    batch: Long,
    piece: String,
    folder: String,
    relative: String,
    isSnapshot: Boolean) {

  /** The partition of the operator whose state it is. */
  def partition: Int = folder.split('/')(2).toInt
}

object StateFile {
  private val Root = "state"
  private val DefaultStore = "default"
  private val Name = """(\d+)(?:_([0-9a-fA-F-]+))?\.(changelog|zip)(?:\.crc)?""".r

  def of(file: Path): Option[StateFile] = file.getName match {
    case Name(version, id, kind) =>
      storeOf(file.getParent).map { case (operator, partition, store, folder) =>
        val piece = Option(id).getOrElse(pieceOf(operator, partition, store, version.toLong))
        // Batch N reads version N and writes version N + 1.
        StateFile(version.toLong - 1, piece, folder, s"$folder/${file.getName}", kind == "zip")
      }
    case _ => None
  }

  /** A store's folder, from the checkpoint's root. */
  def folderOf(store: Path): String = storeOf(store).map(_._4).getOrElse(store.toString)

  /** The name of a piece in checkpoint format 1. */
  def pieceOf(operator: String, partition: String, store: String, version: Long): String =
    s"$operator/$partition/$store/$version"

  /** Operator, partition, store and the folder from the root, if this is a store's folder. */
  private def storeOf(folder: Path): Option[(String, String, String, String)] =
    names(folder, 4) match {
      case Seq(Root, operator, partition, store) if isNumber(operator) && isNumber(partition) =>
        Some((operator, partition, store, s"$Root/$operator/$partition/$store"))
      case Seq(_, Root, operator, partition) if isNumber(operator) && isNumber(partition) =>
        Some((operator, partition, DefaultStore, s"$Root/$operator/$partition"))
      case _ => None
    }

  private def names(path: Path, count: Int): Seq[String] =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null).take(count).map(_.getName).toSeq.reverse

  private def isNumber(name: String): Boolean = name.nonEmpty && name.forall(_.isDigit)
}
