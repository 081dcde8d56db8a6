// Scala because: tasks name the place in the plan that their hints come from.
package penstock.prefetch

/**
 * A place in the plan from which keys can be hinted, in the order of the plan: the earlier, the
 * more time there is to fetch, and the more rows may still be dropped on their way.
 */
sealed abstract class Candidate(val name: String, val rank: Int) extends Serializable {
  override def toString: String = name
}

object Candidate {

  /** Rows that still wait in the log. */
  case object A extends Candidate("A", 0)

  /** Below the partial aggregate. */
  case object B extends Candidate("B", 1)

  /** Right below the shuffle. */
  case object C extends Candidate("C", 2)

  /** Above the shuffle, in the task that reads the state. */
  case object D extends Candidate("D", 3)

  /** In the order of the plan. */
  val all: Seq[Candidate] = Seq(A, B, C, D)

  def named(name: String): Option[Candidate] = all.find(_.name == name)
}
