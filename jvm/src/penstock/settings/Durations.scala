// Scala because: a deadline is an option of a source, which Spark hands to the plug-in as a text.
package penstock.settings

import scala.math.BigDecimal.RoundingMode

/** Texts such as `800ms`, `2s`, `1.5m` and `1h`, read as the server reads them. */
object Durations {
  val Takes = "a time above 0 and of 24h at most with its unit, such as 800ms, 2s, 1.5m or 1h"

  private val Pattern = """\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|min|h)\s*""".r
  private val MsOf = Map("ms" -> 1L, "s" -> 1000L, "m" -> 60000L, "min" -> 60000L, "h" -> 3600000L)
  private val MsMax = 24 * 3600000L

  /** Whole milliseconds; None if the text is none, or not within the bounds. */
  def parse(text: String): Option[Long] = text match {
    case Pattern(number, unit) =>
      val ms = (BigDecimal(number) * MsOf(unit)).setScale(0, RoundingMode.HALF_UP)
      Option.when(ms > 0 && ms <= MsMax)(ms.toLong)
    case _ => None
  }
}
