// Scala because: state stores and the sink meet here, in the JVM that runs their task.
package penstock.commit.executor

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import penstock.commit.channel.Standing

/**
 * The rides of the tasks that write rows to the log, each found by what it computes: Spark closes the
 * files of a state store on threads of its own, while the task waits.
 */
final class StateRides {
  import StateRides._

  private val byTask = new ConcurrentHashMap[Task, StateRide]()

  /**
   * From now until it ends, state of the same partition and batch waits for the rows that the calling
   * task computes, and goes to the log in one request with the last of them. Two attempts at once
   * have nobody wait: one of them might end long after the other.
   */
  def begin(query: String, instance: Long, batch: Long, partition: Int): StateRide = {
    val task = Task(query, instance, batch, partition)
    val ride = new StateRide(ended => { byTask.remove(task, ended); () })
    Option(byTask.put(task, ride)).foreach { other =>
      other.end()
      ride.end()
    }
    ride
  }

  /** Whether the piece waits for rows; `way` is how it gets on without them. */
  private[executor] def board(piece: HeldPiece, standing: Standing, way: StateWay): Boolean =
    standing.instance.exists { instance =>
      val task = Task(standing.query, instance, piece.stateFile.batch, piece.stateFile.partition)
      Option(byTask.get(task)).exists(_.board(piece, way))
    }

  /** How many tasks may take state along. */
  def size: Int = byTask.size
}

private object StateRides {
  final case class Task(query: String, instance: Long, batch: Long, partition: Int)
}

/** How a piece gets to the log, and what happens once it is there. */
private[executor] trait StateWay {

  /** In a request of its own, or of several pieces. */
  def add(piece: HeldPiece): Unit

  /** It came with rows; `entries` are those of its files, in their order. */
  def arrived(piece: HeldPiece, files: Seq[StateBytes], entries: Seq[Long], tookNs: Long): Unit
}

/** A file of a piece on its way to the log. */
final case class StateBytes(path: String, bytes: Array[Byte])

/** The state that one task attempt has written, until the task's rows take it along. */
final class StateRide private[executor] (onEnd: StateRide => Unit) {
  import StateRide._

  private val waiting = mutable.ArrayBuffer.empty[(HeldPiece, StateWay)]
  private var underWay = Seq.empty[Passenger]
  private var bytes = 0L
  private var isOver = false

  private[executor] def board(piece: HeldPiece, way: StateWay): Boolean = synchronized {
    val files = piece.files.values
    val size = files.map(_.bytes).sum
    val fits = files.forall(_.local.isDefined) && bytes + size <= BytesMax && waiting.size < PiecesMax
    if (fits && !isOver) {
      bytes += size
      waiting += piece -> way
    }
    fits && !isOver
  }

  /** What goes with the request that the task sends now. */
  def takeAlong(): Seq[StateBytes] = synchronized {
    val (current, superseded) = waiting.toSeq.partition(_._1.state.isCurrent)
    superseded.foreach { case (piece, way) => way.add(piece) }
    waiting.clear()
    underWay = current.map { case (piece, way) => Passenger(piece, way, Appender.filesOf(piece)) }
    underWay.flatMap(_.files)
  }

  /** The request was answered: the log has what went with it. */
  def arrived(entries: Seq[Long], tookNs: Long): Unit = synchronized {
    var rest = entries
    underWay.foreach { passenger =>
      val (own, others) = rest.splitAt(passenger.files.size)
      rest = others
      passenger.way.arrived(passenger.piece, passenger.files, own, tookNs)
    }
    underWay = Nil
  }

  /** The task sends nothing more: what has not arrived goes as state does that no rows wait for. */
  def end(): Unit = synchronized {
    isOver = true
    onEnd(this)
    waiting.foreach { case (piece, way) => way.add(piece) }
    underWay.foreach(passenger => passenger.way.add(passenger.piece))
    waiting.clear()
    underWay = Nil
  }
}

private object StateRide {
  final case class Passenger(piece: HeldPiece, way: StateWay, files: Seq[StateBytes])

  /** More than this takes longer to send than a request of its own costs. */
  val BytesMax: Long = 256L << 10

  /** Their names are in the request's first line. */
  val PiecesMax = 8
}
