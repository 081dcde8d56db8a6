// Scala because: rules of Spark's planner write it on the stream thread, while a batch is planned.
package penstock.observe

import scala.collection.mutable

import penstock.wire.{Json, PlanNote}

/**
 * What the rules of the plug-in say about the plan of a running query: which operator was planned
 * otherwise, or why it was left to Spark. Of each rule and stateful operator the last note of a run
 * is kept; with more runs or notes than are kept, the oldest go.
 */
final class PlanNotes {
  import PlanNotes._

  private val byRun = mutable.LinkedHashMap.empty[String, mutable.LinkedHashMap[About, Note]]
  private var lastRevision = 0L

  /** A rule says the same of every batch until the plan changes: the first batch of it stays. */
  def say(run: String, batch: Long, rule: String, operator: Long, text: String): Unit =
    synchronized {
      val notes = byRun.getOrElseUpdate(run, mutable.LinkedHashMap.empty)
      val about = About(rule, operator)
      if (!notes.get(about).exists(_.text == text)) {
        lastRevision += 1
        notes(about) = Note(text, batch, lastRevision)
      }
      if (notes.size > NotesKept) notes -= notes.head._1
      if (byRun.size > RunsKept) byRun -= byRun.head._1
    }

  /** The notes of a run by rule and operator, as a JSON array. */
  def json(run: String): String = synchronized {
    val all = Json.createArrayNode()
    for {
      notes <- byRun.get(run).toSeq
      (about, note) <- notes.toSeq.sortBy { case (about, _) => (about.rule, about.operator) }
    } all
      .addObject()
      .put("rule", about.rule)
      .put("operator", about.operator)
      .put("text", note.text)
      .put("since_batch", note.sinceBatch)
    all.toString
  }

  /** Notes of a run that are newer than a revision, the oldest first, each with its revision. */
  def newer(run: String, thanRevision: Long, notesMax: Int): Seq[(Long, PlanNote)] = synchronized {
    val changed = for {
      notes <- byRun.get(run).toSeq
      (about, note) <- notes.toSeq if note.revision > thanRevision
    } yield note.revision -> PlanNote(about.rule, about.operator, note.text, note.sinceBatch)
    changed.sortBy(_._1).take(notesMax)
  }

  def forgetRun(run: String): Unit = synchronized { byRun -= run; () }

  /** How many runs have notes. */
  def size: Int = synchronized(byRun.size)
}

private object PlanNotes {
  val RunsKept = 1000

  /** Of each run. */
  val NotesKept = 200

  final case class About(rule: String, operator: Long)
  final case class Note(text: String, sinceBatch: Long, revision: Long)
}
