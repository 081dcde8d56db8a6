// Scala because: every file that Spark writes to a checkpoint goes its way by this mode.
package penstock.settings

/** How commits are made. */
sealed abstract class Mode(val name: String)

object Mode {

  /** As Spark does it: everything on the path of the batch. */
  case object Sync extends Mode("sync")

  /** State files are copied to the checkpoint location behind the query; all else as Spark does. */
  case object AsyncCheckpoint extends Mode("asyncckpt")

  /** The whole commit leaves the path of the batch. */
  case object Full extends Mode("full")

  val all: Seq[Mode] = Seq(Sync, AsyncCheckpoint, Full)

  def named(name: String): Mode = all.find(_.name == name).get
}
