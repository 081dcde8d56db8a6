// Scala because: rules of Spark's planner leave the notes in the driver's JVM, where questions are asked.
package penstock.admission

import penstock.ShortText
import penstock.observe.PlanNotes
import penstock.wire.PlanNote

/**
 * The notes on the plan of a run that the server has not heard of, for `penstock explain`. A note is
 * told once, and again when it has changed; a server that was started anew is told of all.
 */
private[admission] final class UntoldNotes(notes: PlanNotes, run: String) {
  import UntoldNotes._

  private var toldRevision = Nothing
  private var server = Option.empty[String]

  /** What the next question is to tell, by the revision of each note. */
  def next(): Seq[(Long, PlanNote)] = notes.newer(run, toldRevision, NotesMax).map {
    case (revision, note) => revision -> note.copy(text = ShortText.of(note.text, TextMax))
  }

  /** A server has answered a question that told it of these. */
  def delivered(toldNotes: Seq[(Long, PlanNote)], answering: String): Unit = {
    if (server.exists(_ != answering)) toldRevision = Nothing
    else toldNotes.lastOption.foreach { case (revision, _) => toldRevision = revision }
    server = Some(answering)
  }
}

private object UntoldNotes {

  /** Of a server that has been told of no note. */
  val Nothing = 0L

  /** Of one question; the next one tells of others. */
  val NotesMax = 32
  val TextMax = 500
}
