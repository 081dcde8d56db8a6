// Scala because: tasks find settings in the Hadoop configuration that Spark hands to state
// stores.
package penstock.settings

import org.apache.hadoop.conf.Configuration

/** The settings of the commit, read from a Hadoop configuration made by Spark. */
final class CommitSettings(conf: Configuration) {
  import CommitSettings._

  val mode: Mode = Mode.named(Keys.CommitMode.value(get))

  /** How long a write that fails is repeated before the query is stopped. */
  def retryMs: Long = CommitSettings.retryMs(get)

  /**
   * How long nothing of a run may get further before a wait for it is given up: longer than any
   * failure is retried, so that what fails stops the query by its own name.
   */
  def stallMs: Long = {
    val retrySeconds = Keys.CommitRetrySeconds.value(get) + Keys.RetrySeconds.value(get)
    math.max(Keys.CommitStallSeconds.value(get), retrySeconds) * 1000
  }

  /**
   * How many batches the location may be behind the log. Where changelogs are off, snapshots are in
   * the location before their commits are, and Spark deletes what is so many versions older.
   */
  def behind: Long =
    math.min(Keys.CommitBehind.value(get), math.max(-1, conf.getLong(RetainKey, RetainDefault) - 3))

  /** Threads per JVM that flush, checkpoint and copy. */
  def threads: Int = Keys.CommitThreads.value(get).toInt

  /** The class of the user's own file manager, which does for us what it does for Spark. */
  def fileManager: Option[String] = Keys.CheckpointFileManager.find(get).filter(_.nonEmpty)

  /** Whether files on a local disk are written without Hadoop, which starts a process for each. */
  def hasDirectFiles: Boolean =
    Keys.CheckpointLocalFiles.find(get).map(_ == Keys.DirectFiles).getOrElse(mode != Mode.Sync)

  /** Bytes of state files a JVM may hold before writers wait. */
  def localBytesMax: Long = Keys.LocalMaxBytes.value(get)

  /** The folder for files that are not durable yet; None: Spark's own. */
  def localFolder: Option[String] = Keys.LocalDir.find(get).filter(_.nonEmpty)

  /** Whether a commit also waits for the compaction that the one before it began. */
  def awaitCompaction: Boolean = Keys.CommitAwaitCompaction.value(get)

  /** Whether no compaction runs while an LSM checkpoint is taken. */
  def pauseCompaction: Boolean = Keys.CommitPauseCompaction.value(get)

  /**
   * Whether the log may answer for state before its sync. The JVM, which holds so many bytes of state,
   * then keeps it until the marker is there: where there is little room for that, the log syncs.
   */
  def earlyAnswers(heldBytes: Long): Boolean =
    Keys.CommitEarlyAnswers.value(get) && mode == Mode.Full && heldBytes <= localBytesMax / 2

  /** Whether a query whose sink may skip a batch goes on from a checkpoint in format 2. */
  def acceptsFormat2: Boolean = Keys.CommitAcceptFormat2.value(get)

  /** Whether snapshots of state are in the log too, and not only in the location. */
  def snapshotsInLog: Boolean = Keys.CommitSnapshots.value(get) == "log"

  private def get(key: String): Option[String] = Option(conf.get(key))
}

object CommitSettings {
  private val RetainKey = "spark.sql.streaming.minBatchesToRetain"
  private val RetainDefault = 100L

  /** The same as the instance's, from settings of another kind. */
  def retryMs(get: String => Option[String]): Long = Keys.CommitRetrySeconds.value(get) * 1000
}
