package penstock.settings

import java.time.Instant
import java.time.format.DateTimeParseException

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.BadCall

/** Where a source starts when its checkpoint does not say. */
sealed trait Start
object Start {
  case object Earliest extends Start
  case object Latest extends Start
  final case class At(position: Long) extends Start
  final case class Time(epochMs: Long) extends Start
}

/** What a source was asked to do. */
final case class ReadOptions(
    start: Start,
    rowsMax: Option[Long],
    bytesMax: Option[Long],
    failOnDataLoss: Boolean)

/** What a sink was asked to do; `key` and `substreams` also shape a stream it creates. */
final case class WriteOptions(key: Seq[String], substreams: Option[Int])

/** What a table of ours stands for: one stream, or one for each of its columns. */
sealed trait Streams {
  def isOne: Boolean
}
final case class OneStream(name: String) extends Streams {
  override def isOne: Boolean = true
  override def toString: String = name
}
final case class ByColumn(names: Seq[String]) extends Streams {
  override def isOne: Boolean = false
  override def toString: String = names.mkString(",")
}

/** Options of `format("penstock")`, each read in this one place. */
object Options {
  private val Known = Set(
    "path", "stream", "startingposition", "startingtime", "maxrowspertrigger",
    "maxbytespertrigger", "failondataloss", "key", "substreams", "checkpointlocation",
    "queryname", "url", "token", "tls.ca", "retryseconds", "outputs")

  def streams(options: CaseInsensitiveStringMap): Streams = names(options, "outputs") match {
    case Nil => OneStream(stream(options))
    case outputs =>
      val ofOutputs = outputs.flatMap(name => Seq(s"$name.key", s"$name.substreams"))
      refuseUnknown(options, ofOutputs.map(_.toLowerCase(java.util.Locale.ROOT)).toSet)
      ByColumn(outputs)
  }

  def stream(options: CaseInsensitiveStringMap): String = {
    refuseUnknown(options, Set.empty)
    Option(options.get("path")).orElse(Option(options.get("stream"))).getOrElse(
      throw new BadCall("no_stream", "name the stream: load(\"bids\") or start(\"hot_items\")"))
  }

  private def refuseUnknown(options: CaseInsensitiveStringMap, more: Set[String]): Unit =
    options.keySet().forEach { key =>
      if (key.equalsIgnoreCase("deadline")) {
        throw new BadCall("unknown_option", "deadline is not supported by this version")
      }
      if (!(Known ++ more).contains(key.toLowerCase(java.util.Locale.ROOT))) {
        throw new BadCall(
          "unknown_option",
          s"'$key' is not an option of format(\"penstock\"); the options are " +
            "startingPosition, startingTime, maxRowsPerTrigger, maxBytesPerTrigger, " +
            "failOnDataLoss for a source; key, substreams and outputs for a sink; and NAME.key " +
            "and NAME.substreams for each of several outputs")
      }
    }

  def read(options: CaseInsensitiveStringMap): ReadOptions = ReadOptions(
    start(options),
    positive(options, "maxRowsPerTrigger"),
    positive(options, "maxBytesPerTrigger"),
    options.getBoolean("failOnDataLoss", true))

  /** Options of one of several outputs have its name before theirs. */
  def write(options: CaseInsensitiveStringMap, prefix: String): WriteOptions =
    WriteOptions(names(options, s"${prefix}key"), positive(options, s"${prefix}substreams").map(_.toInt))

  private def names(options: CaseInsensitiveStringMap, key: String): Seq[String] =
    Option(options.get(key)).toSeq.flatMap(_.split(",")).map(_.trim).filter(_.nonEmpty)

  private def start(options: CaseInsensitiveStringMap): Start =
    (Option(options.get("startingPosition")), Option(options.get("startingTime"))) match {
      case (Some(_), Some(_)) =>
        throw new BadCall("bad_option", "give startingPosition or startingTime, not both")
      case (None, Some(time)) => Start.Time(epochMs(time))
      case (None, None) | (Some("earliest"), None) => Start.Earliest
      case (Some("latest"), None) => Start.Latest
      case (Some(text), None) =>
        Start.At(text.toLongOption.filter(_ >= 0).getOrElse(throw new BadCall(
          "bad_option",
          s"startingPosition is '$text'; it takes earliest, latest or a position")))
    }

  private def epochMs(text: String): Long = text.toLongOption.getOrElse {
    try Instant.parse(text).toEpochMilli
    catch {
      case _: DateTimeParseException =>
        throw new BadCall(
          "bad_option",
          s"startingTime is '$text'; it takes milliseconds since 1970 or 2026-01-31T12:00:00Z")
    }
  }

  private def positive(options: CaseInsensitiveStringMap, key: String): Option[Long] =
    Option(options.get(key)).map { text =>
      text.toLongOption.filter(_ > 0).getOrElse(
        throw new BadCall("bad_option", s"$key is '$text'; it takes a whole number above 0"))
    }
}
