// Scala because: state stores and the sink meet here, in the JVM that runs their task.
package penstock.commit.executor

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import penstock.commit.channel.Standing
import penstock.settings.CommitSettings

/**
 * The joint appends of the tasks that run here: a task's last request with rows carries the state
 * that the task has written. Found by what the task computes and not by its thread: Spark closes the
 * files of a state store on threads of its own, while the task waits.
 */
final class JointAppends {
  import JointAppends._

  private val byTask = new ConcurrentHashMap[Task, JointAppend]()

  /**
   * From now until the append ends, state of this batch and partition waits for the rows that the
   * calling task computes. While two attempts at one task run, the state of neither waits: one of
   * them might end long after the other.
   */
  def begin(query: String, instance: Long, batch: Long, partition: Int): JointAppend = {
    val task = Task(query, instance, batch, partition)
    val append = new JointAppend(ended => { byTask.remove(task, ended); () })
    Option(byTask.put(task, append)).foreach { other =>
      other.end()
      append.end()
    }
    append
  }

  /** Has the piece wait for its task's rows; false if `appender` is to append it by itself. */
  private[executor] def offer(
      piece: HeldPiece,
      standing: Standing,
      appender: StateAppender): Boolean = standing.instance.exists { instance =>
    val task = Task(standing.query, instance, piece.stateFile.batch, piece.stateFile.partition)
    Option(byTask.get(task)).exists(_.offer(piece, appender))
  }

  /** How many tasks have begun one and not ended it. */
  def size: Int = byTask.size
}

private object JointAppends {
  final case class Task(query: String, instance: Long, batch: Long, partition: Int)
}

/** Appends pieces of a run to the log in requests without rows, and tells the driver of each. */
private[executor] trait StateAppender {
  def add(piece: HeldPiece): Unit

  /**
   * The piece was appended with rows; `entries` are those of its files, in their order, and `start`
   * is there if the log has not synced them yet.
   */
  def appendedWithRows(
      piece: HeldPiece,
      files: Seq[StateFileBytes],
      entries: Seq[Long],
      start: Option[Long],
      tookNs: Long): Unit
}

/** The path of a file of state, from the checkpoint's root, and its bytes. */
final case class StateFileBytes(path: String, bytes: Array[Byte])

/** The append of one task attempt: the state that waits for its rows, then is sent with them. */
final class JointAppend private[executor] (onEnd: JointAppend => Unit) {
  import JointAppend._

  private val waiting = mutable.ArrayBuffer.empty[(HeldPiece, StateAppender)]
  private var sent = Seq.empty[SentPiece]
  private var bytes = 0L
  private var isOver = false

  private[executor] def offer(piece: HeldPiece, appender: StateAppender): Boolean = synchronized {
    val files = piece.files.values
    val size = files.map(_.bytes).sum
    val isTaken = !isOver && files.forall(_.local.isDefined) && bytes + size <= BytesMax &&
      waiting.size < PiecesMax
    if (isTaken) {
      bytes += size
      waiting += piece -> appender
    }
    isTaken
  }

  /** The files of state to send with the task's last rows. */
  def takeState(): Seq[StateFileBytes] = synchronized {
    val (current, superseded) = waiting.toSeq.partition(_._1.state.isCurrent)
    superseded.foreach { case (piece, appender) => appender.add(piece) }
    waiting.clear()
    sent = current.map { case (piece, appender) =>
      SentPiece(piece, appender, Appender.filesOf(piece))
    }
    sent.flatMap(_.files)
  }

  /** Whether the log may answer for the state that was sent before its sync. */
  def mayBeEarly(heldBytes: Long): Boolean = synchronized {
    sent.forall(each => new CommitSettings(each.piece.conf).earlyAnswers(heldBytes))
  }

  /**
   * The request was answered: `entries` are those of the files that were sent, in their order; with
   * a `start` before the log had synced them.
   */
  def answered(entries: Seq[Long], start: Option[Long], tookNs: Long): Unit = synchronized {
    var rest = entries
    sent.foreach { case SentPiece(piece, appender, files) =>
      val (own, others) = rest.splitAt(files.size)
      rest = others
      appender.appendedWithRows(piece, files, own, start, tookNs)
    }
    sent = Nil
  }

  /** The task sends nothing more: state that no answer has come for is appended without rows. */
  def end(): Unit = synchronized {
    isOver = true
    onEnd(this)
    waiting.foreach { case (piece, appender) => appender.add(piece) }
    sent.foreach(each => each.appender.add(each.piece))
    waiting.clear()
    sent = Nil
  }
}

private object JointAppend {
  final case class SentPiece(piece: HeldPiece, appender: StateAppender, files: Seq[StateFileBytes])

  /** More than this takes longer to send than a request of its own costs. */
  val BytesMax: Long = 256L << 10

  /** Their names are in the request's first line. */
  val PiecesMax = 8
}
