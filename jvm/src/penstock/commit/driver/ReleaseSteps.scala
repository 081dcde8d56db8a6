// Scala because: the release queue names its steps and failures by these, on the driver's threads.
package penstock.commit.driver

import penstock.{BadCall, TryAgain}
import penstock.commit._

/** Names of what a release queue does, and what stops it. */
private object ReleaseSteps {
  private val OtherStart = "other_start"

  /** The batch that a file of the offset or commit log is of. */
  def batchOf(path: String): Long = path.split('/').last.toLong

  def stepOf(effect: Effect): String = effect match {
    case PutOffsets(_) => "release"
    case PutMarker(_) => "marker"
    case PutCommit(_) => "commit log"
    case CopyBatch(_) => "copy"
    case Delete(_) => "delete"
    case Stop(_) => "stop"
  }

  /**
   * What stops the query when the log has refused an effect for good. Where it has lost what tasks
   * had appended, and were answered for before its sync, the call was right: another run goes on.
   */
  def refusal(e: Throwable): Throwable = e match {
    case lost: BadCall if lost.code == OtherStart =>
      new TryAgain("appends_lost", lost.getMessage.stripSuffix(s" [penstock: $OtherStart]"))
    case other => other
  }
}
