// Scala because: settings are read on executors too, where the check of a value must be made.
package penstock.settings

import java.util.Locale

import penstock.BadCall

/**
 * The name of a setting or of an option, with all that its values have in common. A value that does
 * not fit is refused by BadCall, in a sentence that says what fits.
 *
 * @param refusal the code of that error: `bad_setting` or `bad_option`
 */
sealed abstract class Key[A](
    val name: String,
    val default: Option[A],
    val unit: Option[String],
    refusal: String) {

  /** Bounds of a number, both included. */
  def min: Option[Long] = None
  def max: Option[Long] = None

  /** What a value may be, in words. */
  protected def takes: String

  protected def parse(text: String): Option[A]

  /** The value that `get` has under this name, else the default, else nothing. */
  def find(get: String => Option[String]): Option[A] = get(name).map(valueOf).orElse(default)

  /** The value of a key that has a default. */
  def value(get: String => Option[String]): A = find(get).get

  def valueOf(text: String): A = parse(text).getOrElse(
    throw new BadCall(refusal, s"$name is '$text'; it takes $takes"))

  override def toString: String = name
}

final class TextKey private[settings] (name: String, default: Option[String], refusal: String)
    extends Key[String](name, default, None, refusal) {
  override protected def takes: String = "a text"

  override protected def parse(text: String): Option[String] = Some(text)
}

final class ChoiceKey private[settings] (
    name: String,
    default: Option[String],
    choices: Seq[String],
    refusal: String)
    extends Key[String](name, default, None, refusal) {
  override protected def takes: String = choices.mkString(", ")

  override protected def parse(text: String): Option[String] = choices.find(_ == text)
}

final class NumberKey private[settings] (
    name: String,
    default: Option[Long],
    unit: String,
    least: Long,
    most: Option[Long],
    refusal: String)
    extends Key[Long](name, default, Some(unit), refusal) {
  override def min: Option[Long] = Some(least)

  override def max: Option[Long] = most

  override protected def takes: String = {
    val from = if (least == 1) "above 0" else s"not below $least"
    s"a whole number $from" + most.fold("")(bound => s" and not above $bound")
  }

  override protected def parse(text: String): Option[Long] =
    text.toLongOption.filter(number => number >= least && most.forall(number <= _))
}

final class FlagKey private[settings] (name: String, default: Boolean, refusal: String)
    extends Key[Boolean](name, Some(default), None, refusal) {
  override protected def takes: String = "true or false"

  override protected def parse(text: String): Option[Boolean] =
    text.trim.toLowerCase(Locale.ROOT).toBooleanOption
}

/** A time with its unit, in milliseconds. */
final class DurationKey private[settings] (name: String, refusal: String)
    extends Key[Long](name, None, None, refusal) {
  override protected def takes: String = Durations.Takes

  override protected def parse(text: String): Option[Long] = Durations.parse(text)
}

final class DecimalKey private[settings] (name: String, default: Double, most: Double, refusal: String)
    extends Key[Double](name, Some(default), None, refusal) {
  override protected def takes: String = s"a number above 0 and not above $most"

  override protected def parse(text: String): Option[Double] =
    text.trim.toDoubleOption.filter(number => number > 0 && number <= most)
}
