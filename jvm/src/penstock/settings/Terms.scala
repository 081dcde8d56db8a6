// Scala because: options of a source and settings of a session are read in the driver's JVM.
package penstock.settings

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.BadCall

/** A query's terms, as the server is told of them; `deadlineMs` and the policy as they were stated. */
final case class Terms(
    deadlineMs: Option[Long],
    policy: String,
    intervalMs: Option[Long],
    slideMs: Option[Long],
    importance: Double,
    countedFrom: String)

/** The terms that one source of a query, or its session, states; nothing where it states none. */
final case class StatedTerms(
    deadlineMs: Option[Long] = None,
    policy: Option[String] = None,
    intervalMs: Option[Long] = None,
    slideMs: Option[Long] = None,
    importance: Option[Double] = None,
    countedFrom: Option[String] = None) {

  /** Whether a query of these terms is admitted batch by batch. */
  def isStated: Boolean = deadlineMs.isDefined || policy.isDefined
}

object StatedTerms {

  /** The terms among the options of a source. */
  def of(options: CaseInsensitiveStringMap): StatedTerms =
    read(key => Option(options.get(Keys.optionOf(key))))

  /** The terms among settings. Throws BadCall, with what a value may be, for one that does not fit. */
  def read(get: String => Option[String]): StatedTerms = StatedTerms(
    stated(Keys.Deadline, get),
    stated(Keys.Policy, get),
    stated(Keys.Interval, get),
    stated(Keys.Slide, get),
    stated(Keys.Importance, get),
    stated(Keys.DeadlineFrom, get))

  /** Unlike `find`, without the default: an option that is not given leaves it to the session. */
  private def stated[A](key: Key[A], get: String => Option[String]): Option[A] =
    get(key.name).map(key.valueOf)
}

object Terms {
  private val NeedDeadline = Set("deadline", "zstream")

  /**
   * The terms of a query: of its sources the earliest deadline, and what they do not state from the
   * session; None if neither states a deadline or a policy. Throws BadCall where they contradict
   * each other or lack what the policy needs.
   *
   * @param windowSlideMs the slide of a window in the query's plan; for policy `slide` it goes before
   *   the option, which is for queries without one
   */
  def merge(
      ofSources: Seq[StatedTerms],
      ofSession: StatedTerms,
      windowSlideMs: => Option[Long]): Option[Terms] =
    if (!(ofSources :+ ofSession).exists(_.isStated)) None
    else {
      val deadlineMs = ofSources.flatMap(_.deadlineMs).minOption.orElse(ofSession.deadlineMs)
      def only[A](option: String, of: StatedTerms => Option[A]): Option[A] =
        common(option, ofSources.flatMap(of(_))).orElse(of(ofSession))
      val policy = only("policy", _.policy).getOrElse("deadline")
      val slideMs = only("slide", _.slideMs)
      val terms = Terms(
        deadlineMs,
        policy,
        only("interval", _.intervalMs),
        if (policy == "slide") windowSlideMs.orElse(slideMs) else slideMs,
        ofSources.flatMap(_.importance).maxOption.orElse(ofSession.importance).getOrElse(1.0),
        only("deadline.from", _.countedFrom).getOrElse("arrival"))
      lacking(terms).foreach(sentence => throw new BadCall("bad_terms", sentence))
      Some(terms)
    }

  /** Says what the policy needs and the terms lack. */
  private def lacking(terms: Terms): Option[String] = terms.policy match {
    case policy if NeedDeadline(policy) && terms.deadlineMs.isEmpty =>
      Some(s"policy '$policy' needs a deadline; give a source the option deadline, or set ${Keys.Deadline}")
    case "fixed" if terms.intervalMs.isEmpty =>
      Some(s"policy 'fixed' needs an interval; give a source the option interval, or set ${Keys.Interval}")
    case "slide" if terms.slideMs.isEmpty =>
      Some(
        "policy 'slide' needs the slide of a window, and the query has no window(); give a source " +
          "the option slide, or choose policy 'running-mean'")
    case _ => None
  }

  private def common[A](option: String, stated: Seq[A]): Option[A] = stated.distinct match {
    case Seq() => None
    case Seq(value) => Some(value)
    case several => throw differing(option, several.map(_.toString))
  }

  private def differing(option: String, values: Seq[String]): BadCall = new BadCall(
    "bad_terms",
    s"sources of one query have the option $option with ${values.mkString(" and ")}; a batch is " +
      "cut for all sources together, so give it to one of them or the same to all")
}
