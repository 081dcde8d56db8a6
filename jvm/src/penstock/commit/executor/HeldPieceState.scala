// Scala because: threads of tasks move each write of state from state to state, as they commit.
package penstock.commit.executor

/** Where one write of a piece of state is in its life; see HeldPieceState.next. */
sealed trait HeldPieceState {

  /** The write that its batch is committed with, as far as is known. */
  def isCurrent: Boolean = false

  /** The log has it, synced or not: there is nothing left to do for its writer until it is placed. */
  def isInLog: Boolean = false

  /** Nothing more happens to it, and its local files are deleted. */
  def isOver: Boolean = false
}

/** What happens to one write of a piece of state; the table of HeldPieceState says who tells it. */
sealed trait HeldPieceEvent

object HeldPieceEvent {

  /** The driver is to wait for this write, and not for the one before it. */
  case object Announce extends HeldPieceEvent

  /** One of its files is closed; `isWhole`: they all are. */
  final case class FileClosed(isWhole: Boolean) extends HeldPieceEvent

  /** The last of its files was cancelled. */
  case object Cancelled extends HeldPieceEvent

  /** Another write of the same piece takes its place, or has taken it. */
  case object NewerWrite extends HeldPieceEvent

  /** Its files are in the location. */
  case object CopyEnded extends HeldPieceEvent

  /** The driver has answered ack 2: the log has taken its files, and not synced them yet. */
  case object AppliedInLog extends HeldPieceEvent

  /** Its files are durable in the log: so the log has answered, or the marker is there. */
  case object DurableInLog extends HeldPieceEvent

  /** The driver has heard that its files are in the location. */
  case object DurableInLocation extends HeldPieceEvent

  /** The location has its batch, with all that belongs to it. */
  case object BatchCopied extends HeldPieceEvent

  /** Its batch was committed without it. */
  case object BatchWithoutIt extends HeldPieceEvent

  /** A writer needs the bytes of its local files. */
  case object SpaceNeeded extends HeldPieceEvent

  /** Nothing more of its run becomes durable. */
  case object RunEnded extends HeldPieceEvent
}

/**
 * The life of one write of a piece, as a table: no I/O, no lock, no clock. HeldState alone sends
 * events, under its lock, for whoever the last column names; the events of one piece come in any
 * order in which these act.
 *
 * {{{
 * state       event              next         who
 * Begun       Announce           Announced    task, when its commit begins
 * Begun       FileClosed(whole)  Complete     task, or upload
 * Begun       Cancelled          Dropped      task that gives its commit up
 * Begun       BatchCopied        Dropped      driver's answer
 * Announced   Announce           Announced    task: another file is expected
 * Announced   FileClosed(whole)  Complete     task, or upload
 * Announced   Cancelled          Dropped      task that gives its commit up
 * Complete    CopyEnded          Copied       copier: no log, or too large for it
 * Complete    DurableInLog       Durable      driver's answer to the appender (ack 2)
 * Complete    AppliedInLog       Applied      driver's answer to the appender (ack 2)
 * Copied      CopyEnded          Copied       copier whose work was done twice
 * Copied      DurableInLocation  InLocation   driver's answer to the copier (ack 2)
 * Applied     AppliedInLog       Applied      driver's answer to what was appended twice
 * Applied     DurableInLog       Durable      the same, or copier: the batch is committed
 * Applied     BatchCopied        InLocation   driver's answer: it read the log itself
 * Durable     DurableInLog       Durable      driver's answer to what was appended twice
 * Durable     AppliedInLog       Durable      the same
 * Durable     DurableInLocation  InLocation   driver's answer to the copier
 * Durable     BatchCopied        InLocation   driver's answer: it read the log itself
 * Durable     SpaceNeeded        Dropped      task that waits for space: the log has it
 * not over    FileClosed         as it was    task, upload: not whole yet, or done twice
 * not over    NewerWrite         Superseded   task of a later attempt
 * not over    BatchWithoutIt     Dropped      upload that learns of it
 * not over    RunEnded           Dropped      driver, or whoever is told by it
 * over        any                as it was    who has not heard yet
 * }}}
 *
 * Complete is what the driver is told as ack 1. Anything else is a bug of ours.
 */
object HeldPieceState {
  import HeldPieceEvent._

  /** Spark writes its files, and may give them up; the driver has not heard of it. */
  case object Begun extends HeldPieceState

  /** The driver waits for it, and not for the write before it. */
  case object Announced extends HeldPieceState { override def isCurrent: Boolean = true }

  /** All of its files are closed. */
  case object Complete extends HeldPieceState { override def isCurrent: Boolean = true }

  /** Its files are in the location, and the driver is still to hear of it. */
  case object Copied extends HeldPieceState { override def isCurrent: Boolean = true }

  /** The log has it, and may lose it until the marker of its batch is there; its files stay here. */
  case object Applied extends HeldPieceState {
    override def isCurrent: Boolean = true
    override def isInLog: Boolean = true
  }

  /** The log has it; its local files serve loads until the location has them too. */
  case object Durable extends HeldPieceState {
    override def isCurrent: Boolean = true
    override def isInLog: Boolean = true
  }

  /** The location has it: the end of a write that was needed. */
  case object InLocation extends HeldPieceState { override def isOver: Boolean = true }

  /** Another write of the piece has its place. */
  case object Superseded extends HeldPieceState { override def isOver: Boolean = true }

  /** Nobody needs what this JVM has of it. */
  case object Dropped extends HeldPieceState { override def isOver: Boolean = true }

  val all: Seq[HeldPieceState] =
    Seq(Begun, Announced, Complete, Copied, Applied, Durable, InLocation, Superseded, Dropped)

  /** The state after an event; None where it cannot happen. */
  def next(state: HeldPieceState, event: HeldPieceEvent): Option[HeldPieceState] =
    (state, event) match {
      case (over, _) if over.isOver => Some(over)
      case (_, RunEnded | BatchWithoutIt) => Some(Dropped)
      case (_, NewerWrite) => Some(Superseded)
      case (Begun | Announced, Announce) => Some(Announced)
      case (Begun | Announced, FileClosed(true)) => Some(Complete)
      case (same, FileClosed(_)) => Some(same)
      case (Begun | Announced, Cancelled) => Some(Dropped)
      case (Begun, BatchCopied) => Some(Dropped)
      case (Complete | Copied, CopyEnded) => Some(Copied)
      case (Complete | Applied, AppliedInLog) => Some(Applied)
      case (Durable, AppliedInLog) => Some(Durable)
      case (Complete | Applied | Durable, DurableInLog) => Some(Durable)
      case (Copied | Durable, DurableInLocation) => Some(InLocation)
      case (Applied | Durable, BatchCopied) => Some(InLocation)
      case (Durable, SpaceNeeded) => Some(Dropped)
      case _ => None
    }
}
