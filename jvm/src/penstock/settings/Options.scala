// Scala because: Spark hands options to sources and sinks as a Java map.
package penstock.settings

import java.time.Instant
import java.time.format.DateTimeParseException
import java.util.Locale

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
    failOnDataLoss: Boolean,
    terms: StatedTerms)

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
  private val Known: Set[String] = {
    val ofSession = (Keys.ofConnection ++ Keys.ofTerms).map(key => Keys.optionOf(key.name))
    (OptionKeys.all.map(_.name) ++ OptionKeys.ofSpark ++ ofSession).map(lower).toSet
  }

  def streams(options: CaseInsensitiveStringMap): Streams =
    names(options, OptionKeys.Outputs) match {
      case Nil => OneStream(stream(options))
      case outputs =>
        val ofOutputs = outputs.flatMap { name =>
          Seq(OptionKeys.of(name, OptionKeys.RowKey), OptionKeys.of(name, OptionKeys.Substreams))
        }
        refuseUnknown(options, ofOutputs.map(key => lower(key.name)).toSet)
        ByColumn(outputs)
    }

  def stream(options: CaseInsensitiveStringMap): String = {
    refuseUnknown(options, Set.empty)
    OptionKeys.Path.find(in(options)).orElse(OptionKeys.Stream.find(in(options))).getOrElse(
      throw new BadCall("no_stream", "name the stream: load(\"bids\") or start(\"hot_items\")"))
  }

  private def refuseUnknown(options: CaseInsensitiveStringMap, more: Set[String]): Unit =
    options.keySet().forEach { key =>
      if (!(Known ++ more).contains(lower(key))) {
        throw new BadCall(
          "unknown_option",
          s"'$key' is not an option of format(\"penstock\"); the options are " +
            "startingPosition, startingTime, maxRowsPerTrigger, maxBytesPerTrigger, " +
            "failOnDataLoss, deadline, deadline.from, policy, interval, slide and importance for a " +
            "source; key, substreams and outputs for a sink; and NAME.key and NAME.substreams for " +
            "each of several outputs")
      }
    }

  def read(options: CaseInsensitiveStringMap): ReadOptions = ReadOptions(
    start(options),
    OptionKeys.MaxRowsPerTrigger.find(in(options)),
    OptionKeys.MaxBytesPerTrigger.find(in(options)),
    OptionKeys.FailOnDataLoss.value(in(options)),
    StatedTerms.of(options))

  /** The options of the only output; of one of several, those that have its name before theirs. */
  def write(options: CaseInsensitiveStringMap, output: Option[String]): WriteOptions = {
    import OptionKeys.{of, RowKey, Substreams}
    WriteOptions(
      names(options, output.fold(RowKey)(of(_, RowKey))),
      output.fold(Substreams)(of(_, Substreams)).find(in(options)).map(_.toInt))
  }

  private def names(options: CaseInsensitiveStringMap, key: TextKey): Seq[String] =
    key.find(in(options)).toSeq.flatMap(_.split(",")).map(_.trim).filter(_.nonEmpty)

  private def in(options: CaseInsensitiveStringMap)(name: String): Option[String] =
    Option(options.get(name))

  private def lower(name: String): String = name.toLowerCase(Locale.ROOT)

  private def start(options: CaseInsensitiveStringMap): Start =
    (
      OptionKeys.StartingPosition.find(in(options)),
      OptionKeys.StartingTime.find(in(options))) match {
      case (Some(_), Some(_)) =>
        throw new BadCall("bad_option", s"give ${OptionKeys.StartingPosition} or ${OptionKeys.StartingTime}, not both")
      case (None, Some(time)) => Start.Time(epochMs(time))
      case (None, None) | (Some("earliest"), None) => Start.Earliest
      case (Some("latest"), None) => Start.Latest
      case (Some(text), None) =>
        Start.At(text.toLongOption.filter(_ >= 0).getOrElse(throw new BadCall(
          "bad_option",
          s"${OptionKeys.StartingPosition} is '$text'; it takes earliest, latest or a position")))
    }

  private def epochMs(text: String): Long = text.toLongOption.getOrElse {
    try Instant.parse(text).toEpochMilli
    catch {
      case _: DateTimeParseException =>
        throw new BadCall(
          "bad_option",
          s"${OptionKeys.StartingTime} is '$text'; it takes milliseconds since 1970 or 2026-01-31T12:00:00Z")
    }
  }
}
