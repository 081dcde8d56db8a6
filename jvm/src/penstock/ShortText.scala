// Scala because: texts of Spark's plans and of its processes go to the server and into notes.
package penstock

/** Texts that are cut, for people. */
object ShortText {

  /**
   * A text of so many characters at most. Characters are those of Unicode: half of one, as Java has
   * them, is no text that JSON can carry.
   */
  def of(text: String, charactersMax: Int): String =
    if (text.codePointCount(0, text.length) <= charactersMax) text
    else s"${text.substring(0, text.offsetByCodePoints(0, charactersMax))}…"
}
