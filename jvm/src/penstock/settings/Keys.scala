// Scala because: the plug-in reads its settings from Spark's configurations, in every JVM.
package penstock.settings

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration

import penstock.{BadCall, Version}

/**
 * Every setting `spark.penstock.*` of the plug-in, with its default, unit and bounds. What each is
 * for is told once, by `penstock.settings.plugin`; both sides are held to the same list by a test.
 */
object Keys {
  private val Prefix = "spark.penstock."

  val Url: TextKey = text("url")
  val Token: TextKey = text("token", Some(""))
  val TokenFile: TextKey = text("tokenFile")
  val TlsCa: TextKey = text("tls.ca")
  val RetrySeconds: NumberKey = number("retrySeconds", 60, "s", least = 0)

  val CommitMode: ChoiceKey = choice("commit.mode", Mode.Full.name, Mode.all.map(_.name))
  val CommitRetrySeconds: NumberKey = number("commit.retrySeconds", 60, "s")
  val CommitStallSeconds: NumberKey = number("commit.stallSeconds", 600, "s")
  val CommitBehind: NumberKey = number("commit.behind", 8, "batches")
  val CommitThreads: NumberKey = number("commit.threads", 4, "threads", most = IntMax)
  val CommitSnapshots: ChoiceKey = choice("commit.snapshots", "location", Seq("location", "log"))
  val CommitAwaitCompaction: FlagKey = flag("commit.awaitCompaction")
  val CommitPauseCompaction: FlagKey = flag("commit.pauseCompaction")
  val CommitEarlyAnswers: FlagKey = flag("commit.earlyAnswers")
  val CommitAcceptFormat2: FlagKey = flag("commit.acceptFormat2")

  val InlineBytes: NumberKey = number("inline.bytes", 128L << 10, "bytes", least = 0)

  val BatchHadoopConf: ChoiceKey = choice("batch.hadoopConf", "slim", Seq("slim", "spark"))

  /** Read where a session is made, in Python; here so that it is no unknown setting. */
  val BatchSwitches: FlagKey = new FlagKey(Prefix + "batch.switches", true, BadSetting)

  /** Whether generated code refers to the watermark, or contains it. */
  val BatchWatermark: ChoiceKey =
    choice("batch.watermark", WatermarkByReference, Seq(WatermarkByReference, "spark"))

  /** The value of `BatchWatermark` with which code is not compiled anew for each watermark. */
  def WatermarkByReference: String = "reference"

  /** Whether a scan of state that could remove nothing is made. */
  val Eviction: ChoiceKey = choice("eviction", SkipEviction, Seq(SkipEviction, "spark"))

  /** The value of `Eviction` that spares such scans. */
  def SkipEviction: String = "skip"

  val Deadline: DurationKey = duration("deadline")
  val DeadlineFrom: ChoiceKey = choice("deadline.from", "arrival", Seq("arrival", "origin"))
  val Policy: ChoiceKey = new ChoiceKey(
    Prefix + "policy",
    None,
    Seq("asap", "fixed", "zstream", "slide", "running-mean", "deadline", "auto"),
    BadSetting)
  val Interval: DurationKey = duration("interval")
  val Slide: DurationKey = duration("slide")
  val Importance: DecimalKey = new DecimalKey(Prefix + "importance", 1.0, 1000.0, BadSetting)

  /** Whose tasks run first: an order of ours, or Spark's own. */
  val Schedule: ChoiceKey =
    choice("schedule", SparkSchedule, Seq("edf", "rdas", "fifo", FairSchedule, SparkSchedule))

  /** The value of `Schedule` that leaves Spark's scheduler as it is. */
  def SparkSchedule: String = "spark"

  /** The value of `Schedule` by which queries share the cores. */
  def FairSchedule: String = "fair"

  /** How aggregates over sliding windows are planned. */
  val Windows: ChoiceKey = choice("windows", "panes", Seq("panes", SparkWindows))

  /** The value of `Windows` that leaves them as Spark plans them. */
  def SparkWindows: String = "spark"

  val Prefetch: ChoiceKey = choice("prefetch", "off", Seq("auto", "off", "A", "B", "C", "D"))
  val PrefetchCache: ChoiceKey = new ChoiceKey(
    Prefix + "prefetch.cache", None, Seq("timestamp", "lru", "clock", "off"), BadSetting)
  val PrefetchCacheBytes: NumberKey = number("prefetch.cache.bytes", 64L << 20, "bytes")
  val PrefetchCacheWrites: ChoiceKey =
    choice("prefetch.cache.writes", "through", Seq("through", "back"))
  val PrefetchThreads: NumberKey = number("prefetch.threads", 8, "threads", most = Some(256))
  val PrefetchUnusedMax: NumberKey =
    number("prefetch.unused.max", 0, "%", least = 0, most = Some(100))
  val PrefetchMargin: NumberKey = number("prefetch.margin", 2, "ms", least = 0)
  val PrefetchHotThreshold: NumberKey =
    number("prefetch.hot.threshold", 64, "rows", most = Some(255))
  val PrefetchReads: ChoiceKey =
    choice("prefetch.reads", "spark", Seq("spark", "direct", "slow1ms"))

  /** What runs an aggregate over sliding windows below its shuffle. */
  val Devices: ChoiceKey =
    choice("devices", AutoDevices, Seq(AutoDevices, SparkDevices, PanesDevices, CpuDevices, GpuDevices))

  /** The value of `Devices` with which the server plans each batch of a query that asks it. */
  def AutoDevices: String = "auto"

  /** The value of `Devices` that leaves it as Spark plans it. */
  def SparkDevices: String = "spark"

  /** The value of `Devices` that has it made by panes, in Spark. */
  def PanesDevices: String = "panes"

  /** The values of `Devices` that send columns to a Python worker. */
  def CpuDevices: String = "cpu"
  def GpuDevices: String = "gpu"

  /** How devices are planned where `Devices` is `auto`. */
  val DevicesPolicy: ChoiceKey =
    choice(
      "devices.policy",
      "ours",
      Seq("ours", "ours-columnar", "lmstream", "static", "all-cpu", "all-gpu"))
  val DevicesGpuWorkers: NumberKey = number("devices.gpuWorkers", 1, "workers", most = Some(1024))

  /** Whether workers make a row for every window, as Spark does, for measurements. */
  val DevicesExpand: FlagKey = flag("devices.expand")

  val CheckpointFileManager: TextKey = text("checkpoint.fileManagerClass")

  /** Who writes files to a location on a local disk; None: it depends on the mode. */
  val CheckpointLocalFiles: ChoiceKey = new ChoiceKey(
    Prefix + "checkpoint.localFiles", None, Seq(DirectFiles, "spark"), BadSetting)

  /** The value of `CheckpointLocalFiles` with which java.nio writes them, and not Hadoop. */
  def DirectFiles: String = "direct"

  val LocalDir: TextKey = text("local.dir")
  val LocalMaxBytes: NumberKey = number("local.maxBytes", 1L << 30, "bytes")

  /** The settings of the connection, which one source or sink may also have as options. */
  val ofConnection: Seq[Key[_]] = Seq(Url, Token, TokenFile, TlsCa, RetrySeconds)

  /** The terms of a query, which any source of it may also have as options. */
  val ofTerms: Seq[Key[_]] = Seq(Deadline, DeadlineFrom, Policy, Interval, Slide, Importance)

  val all: Seq[Key[_]] = ofConnection ++ ofTerms ++ Seq(
    CommitMode, CommitRetrySeconds, CommitStallSeconds, CommitBehind, CommitThreads,
    CommitSnapshots, CommitAwaitCompaction, CommitPauseCompaction, CommitEarlyAnswers,
    CommitAcceptFormat2, InlineBytes, BatchHadoopConf, BatchSwitches, BatchWatermark, Eviction,
    Schedule, Windows, Devices, DevicesPolicy, DevicesGpuWorkers, DevicesExpand, Prefetch,
    PrefetchCache, PrefetchCacheBytes, PrefetchCacheWrites, PrefetchThreads, PrefetchUnusedMax,
    PrefetchMargin, PrefetchHotThreshold, PrefetchReads, CheckpointFileManager, CheckpointLocalFiles, LocalDir, LocalMaxBytes)

  /** Settings of earlier versions, or what their names began with. */
  private val removed: Seq[String] = Seq("commit.protocol", "coordinator.").map(Prefix + _)

  /** Throws BadCall for a setting of ours that nobody reads, of all that are made in one place. */
  def refuseUnknown(names: Iterable[String]): Unit = {
    val known = all.map(_.name).toSet
    names.find(name => name.startsWith(Prefix) && !known.contains(name)).foreach { name =>
      val sentence =
        if (removed.exists(name.startsWith)) {
          s"$name is a setting of an earlier version, which had other protocols to commit by; " +
            "every query commits by its marker now: remove that setting"
        } else {
          s"$name is no setting of Penstock ${Version.current}, whose docs/settings.md lists them; " +
            "correct its name or remove it"
        }
      throw new BadCall("unknown_setting", sentence)
    }
  }

  /** The same for the settings of a query, as Spark hands them on. */
  def refuseUnknown(conf: Configuration): Unit =
    refuseUnknown(conf.getPropsWithPrefix(Prefix).keySet.asScala.map(Prefix + _))

  /** The name of a setting of the connection or of the terms as an option of one source or sink. */
  def optionOf(setting: String): String = setting.stripPrefix(Prefix)

  private def BadSetting = "bad_setting"

  /** Of what Java counts in an Int. */
  private[settings] def IntMax: Option[Long] = Some(Int.MaxValue.toLong)

  private def text(name: String, default: Option[String] = None): TextKey =
    new TextKey(Prefix + name, default, BadSetting)

  private def number(
      name: String,
      default: Long,
      unit: String,
      least: Long = 1,
      most: Option[Long] = None): NumberKey =
    new NumberKey(Prefix + name, Some(default), unit, least, most, BadSetting)

  private def flag(name: String): FlagKey = new FlagKey(Prefix + name, false, BadSetting)

  private def choice(name: String, default: String, choices: Seq[String]): ChoiceKey =
    new ChoiceKey(Prefix + name, Some(default), choices, BadSetting)

  private def duration(name: String): DurationKey = new DurationKey(Prefix + name, BadSetting)
}

/** The options of `format("penstock")`; of several outputs each has its own `key` and `substreams`. */
object OptionKeys {
  val Path: TextKey = text("path")
  val Stream: TextKey = text("stream")

  val StartingPosition: TextKey = text("startingPosition")
  val StartingTime: TextKey = text("startingTime")
  val MaxRowsPerTrigger: NumberKey = number("maxRowsPerTrigger", "rows")
  val MaxBytesPerTrigger: NumberKey = number("maxBytesPerTrigger", "bytes")
  val FailOnDataLoss: FlagKey = new FlagKey("failOnDataLoss", true, BadOption)

  val RowKey: TextKey = text("key")
  val Substreams: NumberKey = number("substreams", "substreams", Keys.IntMax)
  val Outputs: TextKey = text("outputs")

  val all: Seq[Key[_]] = Seq(
    Path, Stream, StartingPosition, StartingTime, MaxRowsPerTrigger, MaxBytesPerTrigger,
    FailOnDataLoss, RowKey, Substreams, Outputs)

  /** Options that Spark hands to every source or sink. */
  val ofSpark: Seq[String] = Seq("checkpointLocation", "queryName")

  /** An option of one of several outputs has the name of the output before its own. */
  def of(output: String, key: TextKey): TextKey = text(s"$output.${key.name}")

  def of(output: String, key: NumberKey): NumberKey =
    number(s"$output.${key.name}", key.unit.getOrElse(""), key.max)

  private def BadOption = "bad_option"

  private def text(name: String): TextKey = new TextKey(name, None, BadOption)

  private def number(name: String, unit: String, most: Option[Long] = None): NumberKey =
    new NumberKey(name, None, unit, 1, most, BadOption)
}
