package penstock.settings

import org.apache.hadoop.conf.Configuration

import penstock.BadCall

/** The settings of the commit, read from a Hadoop configuration made by Spark. */
final class CommitSettings(conf: Configuration) {
  import CommitSettings._

  val mode: Mode = {
    val told = conf.get(ModeKey, Mode.Full.name)
    Mode.all
      .find(_.name == told)
      .getOrElse(
        throw new BadCall(
          "bad_setting",
          s"$ModeKey is '$told'; it takes ${Mode.all.map(_.name).mkString(", ")}"))
  }

  /** How long a write that fails is repeated before the query is stopped. */
  def retryMs: Long = number(RetryKey, RetrySecondsDefault) * 1000

  /**
   * How many batches the location may be behind the log. Where changelogs are off, snapshots are in
   * the location before their commits are, and Spark deletes what is so many versions older.
   */
  def behind: Long =
    math.min(number(BehindKey, 8), math.max(-1, number(RetainKey, RetainDefault) - 3))

  /** Threads per JVM that flush, checkpoint and copy. */
  def threads: Int = number(ThreadsKey, 4).toInt

  /** Bytes of state files a JVM may hold before writers wait. */
  def localBytesMax: Long = number(LocalBytesKey, 1L << 30)

  /** The folder for files that are not durable yet; None: Spark's own. */
  def localFolder: Option[String] = Option(conf.get(LocalFolderKey)).filter(_.nonEmpty)

  /** Whether a commit also waits for the compaction that the one before it began. */
  def awaitCompaction: Boolean = conf.getBoolean(AwaitCompactionKey, false)

  /** Whether snapshots of state are in the log too, and not only in the location. */
  def snapshotsInLog: Boolean = {
    val told = conf.get(SnapshotsKey, SnapshotsInLocation)
    if (told != SnapshotsInLocation && told != SnapshotsInLog) {
      throw new BadCall(
        "bad_setting",
        s"$SnapshotsKey is '$told'; it takes $SnapshotsInLocation, $SnapshotsInLog")
    }
    told == SnapshotsInLog
  }

  private def number(key: String, default: Long): Long = {
    val told = conf.get(key)
    if (told == null) default
    else
      told.toLongOption
        .filter(_ > 0)
        .getOrElse(throw new BadCall("bad_setting", s"$key is '$told'; it takes a number above 0"))
  }
}

object CommitSettings {
  private val RetrySecondsDefault = 60L
  private val RetainKey = "spark.sql.streaming.minBatchesToRetain"
  private val RetainDefault = 100L

  /** The same as the instance's, from settings of another kind. */
  def retryMs(get: String => String): Long =
    get(RetryKey).toLongOption.getOrElse(RetrySecondsDefault) * 1000

  val ModeKey = "spark.penstock.commit.mode"
  val RetryKey = "spark.penstock.commit.retrySeconds"
  val BehindKey = "spark.penstock.commit.behind"
  val ThreadsKey = "spark.penstock.commit.threads"
  val SnapshotsKey = "spark.penstock.commit.snapshots"
  private val SnapshotsInLocation = "location"
  private val SnapshotsInLog = "log"
  val AwaitCompactionKey = "spark.penstock.commit.awaitCompaction"
  val LocalFolderKey = "spark.penstock.local.dir"
  val LocalBytesKey = "spark.penstock.local.maxBytes"
}
