// Scala because: the controller in the driver says with each switch why it switched.
package penstock.prefetch

/** Twin of `penstock.prefetch.switch_reasons`: the same sentences. */
private[prefetch] object SwitchReasons {
  def first(candidate: Candidate, misses: Long, batch: Long): String =
    s"$misses reads of batch $batch missed the cache: $candidate hints, the earliest of the candidates"

  def discarded(candidate: Candidate, unused: Long, total: Long, percentMax: Long): String =
    s"$unused of $total entries fetched for hints of $candidate were never read, and " +
      s"$percentMax % may be: $candidate and all before it are discarded for good"

  def inTime(candidate: Candidate, slackUs: Long, accessUs: Long, marginUs: Long): String =
    s"$candidate is the latest whose slack for 99 % of rows, ${ms(slackUs)}, covers p99 of " +
      s"access, ${ms(accessUs)}, and a margin of ${ms(marginUs)}"

  def tooLate(candidate: Candidate, accessUs: Long, marginUs: Long): String =
    s"no slack for 99 % of rows covers p99 of access, ${ms(accessUs)}, and a margin of " +
      s"${ms(marginUs)}: $candidate is the earliest of the rest"

  def unmeasured(candidate: Candidate): String =
    s"too few batches have been timed: $candidate is the earliest of the rest"

  def offered(candidates: Seq[Candidate]): String = {
    val names = if (candidates.isEmpty) "none" else candidates.mkString(" ")
    s"the candidates in the plan are now $names"
  }

  val NothingLeft = "no candidate is left"

  def joined(parts: String*): String = parts.filter(_.nonEmpty).mkString("; ")

  private def ms(us: Long): String = s"${us / 1000}.${us % 1000 / 100} ms"
}
