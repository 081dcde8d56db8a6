// Scala because: the driver's planner asks it before every batch from where keys are hinted.
package penstock.prefetch

/**
 * Prefetched entries of one candidate that are judged: the rows they were hinted for are read.
 *
 * @param used how many a task came to read
 * @param unused how many nobody ever read
 */
final case class Prefetches(used: Long, unused: Long) {
  def total: Long = used + unused

  def +(other: Prefetches): Prefetches = Prefetches(used + other.used, unused + other.unused)
}

/**
 * A finished batch of one stateful operator, as the controller is told of it.
 *
 * @param slackUs of each candidate the time from hint to read that 99 % of the batch's rows had, or
 *   would have had
 * @param accessUs reads of the store, counted by the time that none of them took longer than, the
 *   wait for a thread included
 * @param hasFailedAttempts hints of a failed attempt are there twice: nothing is judged by them
 */
final case class OperatorBatch(
    batch: Long,
    rows: Long,
    misses: Long,
    prefetches: Map[Candidate, Prefetches] = Map.empty,
    slackUs: Map[Candidate, Long] = Map.empty,
    accessUs: Map[Long, Long] = Map.empty,
    hasFailedAttempts: Boolean = false)

/** Two settings, and the access time up to which a miss costs less than a hint. */
final case class ControlTerms(unusedPercentMax: Long = 0, marginUs: Long = 2000, memoryUs: Long = 50)

/** A change of the active candidates after a batch, and the sentence that says why. */
final case class Switch(batch: Long, active: Seq[Candidate], reason: String)

/**
 * From which places of the plan keys are hinted to one stateful operator. Twin of
 * `penstock.prefetch.controller`, which says what the rules are; both run tests/vectors/prefetch.json.
 *
 * @param candidates those that the operator has, in the order of the plan
 * @param seen the last batches with rows, the newest last
 * @param judged the last prefetches that are judged, the newest last
 */
final case class Controller(
    candidates: Seq[Candidate],
    terms: ControlTerms = ControlTerms(),
    hasMissed: Boolean = false,
    chosen: Option[Candidate] = None,
    discarded: Set[Candidate] = Set.empty,
    seen: Vector[OperatorBatch] = Vector.empty,
    judged: Vector[Map[Candidate, Prefetches]] = Vector.empty) {
  import Controller._

  def remaining: Seq[Candidate] = candidates.filterNot(discarded)

  /** The candidates that hint in the next batch, in the order of the plan. */
  def active: Seq[Candidate] = chosen.toSeq.flatMap { candidate =>
    remaining.filter(each => each == candidate || each == Candidate.D)
  }

  /**
   * The controller after a batch; and the switch, if other candidates are active now.
   *
   * @param planned those that the plan has now; it may have others than before
   */
  def after(batch: OperatorBatch, planned: Seq[Candidate]): (Controller, Option[Switch]) = {
    val (judging, reason) = withCandidates(planned).informed(batch).withoutWorst
    val (next, why) = judging.choose(batch)
    val decided = judging.copy(chosen = next)
    (decided, switchTo(decided, batch.batch, reason, why))
  }

  /** The controller where the batch behind `batch` is planned again, with these candidates. */
  def offered(planned: Seq[Candidate], batch: Long): (Controller, Option[Switch]) = {
    val other = withCandidates(planned)
    (other, switchTo(other, batch))
  }

  private def withCandidates(planned: Seq[Candidate]): Controller = {
    val other = copy(candidates = planned)
    if (chosen.forall(other.remaining.contains)) other
    else other.copy(chosen = other.remaining.headOption)
  }

  private def switchTo(decided: Controller, batch: Long, why: String*): Option[Switch] =
    Option.when(decided.active != active) {
      val plan = if (decided.candidates == candidates) "" else SwitchReasons.offered(decided.candidates)
      Switch(batch, decided.active, SwitchReasons.joined(plan +: why: _*))
    }

  private def informed(batch: OperatorBatch): Controller = {
    val reported = if (batch.hasFailedAttempts) Map.empty[Candidate, Prefetches] else batch.prefetches
    copy(
      hasMissed = hasMissed || isCostly(batch),
      seen = if (batch.rows == 0) seen else (seen :+ batch).takeRight(BatchesSeen),
      judged = (judged :+ reported).takeRight(BatchesSeen))
  }

  private def isCostly(batch: OperatorBatch): Boolean =
    batch.misses > 0 && accessP99Us(Seq(batch.accessUs)).exists(_ > terms.memoryUs)

  private def withoutWorst: (Controller, String) = {
    val sums = summed(judged.flatten)
    val worst = remaining.reverse.flatMap(each => sums.get(each).map(each -> _)).find {
      case (_, each) => 100 * each.unused > terms.unusedPercentMax * each.total
    }
    worst.fold((this, "")) { case (candidate, each) =>
      val gone = remaining.take(remaining.indexOf(candidate) + 1)
      val reason = SwitchReasons.discarded(candidate, each.unused, each.total, terms.unusedPercentMax)
      (copy(discarded = discarded ++ gone), reason)
    }
  }

  private def choose(batch: OperatorBatch): (Option[Candidate], String) =
    if (!hasMissed || candidates.isEmpty) (None, "")
    else
      (remaining.headOption, chosen) match {
        case (None, _) => (None, SwitchReasons.NothingLeft)
        case (Some(first), None) if batch.misses > 0 =>
          (Some(first), SwitchReasons.first(first, batch.misses, batch.batch))
        case (Some(first), current) =>
          choice.fold[(Option[Candidate], String)] {
            val stays = current.filter(remaining.contains).getOrElse(first)
            (Some(stays), SwitchReasons.unmeasured(stays))
          } { case (candidate, reason) => (Some(candidate), reason) }
      }

  /** The latest candidate in time, else the earliest; None as long as nobody can tell. */
  private def choice: Option[(Candidate, String)] =
    if (remaining.isEmpty || seen.size < BatchesSeen) None
    else
      accessP99Us(seen.map(_.accessUs)).map { accessUs =>
        val inTime = for {
          candidate <- remaining.reverse
          slackUs <- slackUsOf(candidate, seen) if slackUs >= accessUs + terms.marginUs
        } yield candidate -> SwitchReasons.inTime(candidate, slackUs, accessUs, terms.marginUs)
        inTime.headOption.getOrElse {
          remaining.head -> SwitchReasons.tooLate(remaining.head, accessUs, terms.marginUs)
        }
      }
}

object Controller {

  /** How many of the newest batches with rows slack, access and use are judged by. */
  val BatchesSeen = 5

  /** The time that 99 % of the reads in all histograms took at most; None without reads. */
  private[prefetch] def accessP99Us(histograms: Seq[Map[Long, Long]]): Option[Long] = {
    val merged = histograms.flatten.groupMapReduce(_._1)(_._2)(_ + _).toSeq.sorted
    val total = merged.map(_._2).sum
    val counted = merged.map(_._2).scanLeft(0L)(_ + _).drop(1)
    merged.zip(counted).collectFirst {
      case ((boundUs, _), upToHere) if total > 0 && 100 * upToHere >= 99 * total => boundUs
    }
  }

  /** The slack that 99 % of the rows of these batches had; None where one that counts tells none. */
  private[prefetch] def slackUsOf(candidate: Candidate, batches: Seq[OperatorBatch]): Option[Long] = {
    val known = batches.map(batch => (batch.slackUs.getOrElse(candidate, -1L), batch.rows)).sorted
    val total = known.map(_._2).sum
    val leftOut = known.map(_._2).scanLeft(0L)(_ + _).drop(1)
    known.zip(leftOut)
      .collectFirst { case ((slackUs, _), rows) if 100 * rows > total => slackUs }
      .filter(_ >= 0)
  }

  private def summed(pairs: Seq[(Candidate, Prefetches)]): Map[Candidate, Prefetches] =
    pairs.groupMapReduce(_._1)(_._2)(_ + _)
}
