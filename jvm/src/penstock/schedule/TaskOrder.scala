// Scala because: Spark asks for the order at every offer of a core, under its scheduler's lock.
package penstock.schedule

/**
 * One stage of one job of a query, as far as its order depends on it.
 *
 * @param job, stage Spark's numbers
 * @param running how many of its tasks have a core
 * @param weight multiplies its query's share under `rdas`, in (0, 1]
 */
final case class TaskSetFacts(
    key: String,
    job: Int,
    stage: Int,
    seenAtMs: Long,
    running: Int,
    query: Option[String],
    deadlineAtMs: Option[Long],
    weight: Double) {

  def dueAtMs: Long = deadlineAtMs.getOrElse(seenAtMs + TaskOrder.UnknownDeadlineMs)

  /** Whom its cores count for; no query has a name with a space. */
  def owner: String = query.getOrElse(s"job $job")
}

/**
 * The order in which task sets of queries with deadlines are offered free cores. Twin of
 * `penstock.schedule.order`, which says what each order is for; both run tests/vectors/schedule.json.
 */
object TaskOrder {
  val UnknownDeadlineMs = 10000L
  private val WeightMin = 1.0 / 3.0

  type Order = Seq[TaskSetFacts] => Seq[TaskSetFacts]

  /** The order of a policy: edf, rdas, fifo or fair. */
  def of(policy: String): Order = policy match {
    case "fifo" => _.sortBy(set => Rank(0, 0, set.job, set.stage))
    case "edf" => _.sortBy(set => Rank(0, set.dueAtMs, set.job, set.stage))
    case "fair" => byOwner { (_, owner) => (owner.running.toDouble, 0L) }
    case "rdas" => byOwner { (weight, owner) => (owner.running / weight, owner.dueAtMs) }
  }

  /** The share of each query under `rdas`, by its name. */
  def weights(sets: Seq[TaskSetFacts]): Map[String, Double] = weightsOf(owners(sets))

  private def byOwner(shareAndDue: (Double, Owner) => (Double, Long)): Order = { sets =>
    val queries = owners(sets)
    val weights = weightsOf(queries)
    val sharesAndDue = queries.map { case (name, owner) => name -> shareAndDue(weights(name), owner) }
    sets.sortBy { set =>
      val (share, dueAtMs) = sharesAndDue(set.owner)
      Rank(share, dueAtMs, set.job, set.stage)
    }
  }

  private def owners(sets: Seq[TaskSetFacts]): Map[String, Owner] =
    sets.groupMapReduce(_.owner)(set => Owner(set.dueAtMs, set.running, set.weight)) {
      (owner, other) =>
        Owner(
          math.min(owner.dueAtMs, other.dueAtMs),
          owner.running + other.running,
          math.min(owner.weight, other.weight))
    }

  private def weightsOf(queries: Map[String, Owner]): Map[String, Double] = {
    val due = queries.values.map(_.dueAtMs)
    val least = due.minOption.getOrElse(0L)
    val most = due.maxOption.getOrElse(0L)
    val span = most - least
    queries.map { case (name, owner) =>
      val urgency = if (span == 0) 1.0 else (most - owner.dueAtMs).toDouble / span
      name -> (WeightMin + (1.0 - WeightMin) * urgency) * owner.weight
    }
  }

  /** A query with all its task sets together: its earliest deadline, and its cores. */
  private final case class Owner(dueAtMs: Long, running: Int, weight: Double)

  private final case class Rank(share: Double, dueAtMs: Long, job: Int, stage: Int)

  private implicit val inRank: Ordering[Rank] = (rank: Rank, other: Rank) => {
    val byShare = java.lang.Double.compare(rank.share, other.share)
    val byDue = java.lang.Long.compare(rank.dueAtMs, other.dueAtMs)
    val byJob = Integer.compare(rank.job, other.job)
    if (byShare != 0) byShare
    else if (byDue != 0) byDue
    else if (byJob != 0) byJob
    else Integer.compare(rank.stage, other.stage)
  }
}
