// Scala because: a deadline is an option of a source, which Spark hands to the plug-in as a text.
package penstock.settings

import java.util.Locale

import scala.math.BigDecimal.RoundingMode

/** Times as people write them, such as `800ms`, `2s` and `1.5 minutes`; the server reads the same. */
object Durations {
  val Takes = "a time above 0 and of 24h at most with its unit, such as 800ms, 2s or 1.5 minutes"

  private val Pattern = """([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)""".r
  private val MsMax = 24 * 3600000L
  private val MsOf: Map[String, Long] = Seq(
    1L -> Seq("ms", "milli", "millis", "millisecond", "milliseconds"),
    1000L -> Seq("s", "sec", "secs", "second", "seconds"),
    60000L -> Seq("m", "min", "mins", "minute", "minutes"),
    3600000L -> Seq("h", "hour", "hours"),
    86400000L -> Seq("d", "day", "days")).flatMap { case (ms, names) => names.map(_ -> ms) }.toMap

  /** Whole milliseconds; None if the text is none, or not within the bounds. */
  def parse(text: String): Option[Long] = text.trim.toLowerCase(Locale.ROOT) match {
    case Pattern(number, unit) if MsOf.contains(unit) =>
      val ms = (BigDecimal(number) * MsOf(unit)).setScale(0, RoundingMode.HALF_UP)
      Option.when(ms > 0 && ms <= MsMax)(ms.toLong)
    case _ => None
  }
}
