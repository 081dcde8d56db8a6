// Scala because: sources of Spark tell it on the stream thread, in the driver's JVM.
package penstock.admission

/** So many rows and bytes, as a source counts them; None is what it cannot count. */
final case class Amount(rows: Option[Long] = None, bytes: Option[Long] = None) {

  /** Both together; what one of the two cannot count is not counted. */
  def +(other: Amount): Amount =
    Amount(Amount.sum(rows, other.rows), Amount.sum(bytes, other.bytes))
}

object Amount {
  val Nothing: Amount = Amount(Some(0L), Some(0L))
  val Unknown: Amount = Amount()

  private def sum(left: Option[Long], right: Option[Long]): Option[Long] =
    for (some <- left; more <- right) yield some + more
}
