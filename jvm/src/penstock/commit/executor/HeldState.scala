// Scala because: state stores of all tasks of an executor write to it and read from it.
package penstock.commit.executor

import java.io.File
import java.nio.file.{Files => NioFiles}
import java.util.UUID

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import penstock.{Failpoint, TryAgain}
import penstock.checkpoint.location.{Location, StateFile}
import penstock.commit.PieceWritten
import penstock.commit.channel.{Answer, NotReleasing, Standing, Wrote}
import penstock.commit.driver.ReleaseQueues
import penstock.settings.{CommitSettings, Keys}

/**
 * The state this JVM has written and that is not in the checkpoint location yet. A file is written
 * to the local folder first; once every file of a piece is complete the driver is told (ack 1), and
 * once it is durable again (ack 2). Only the run that wrote a file is served it from here.
 */
object HeldState extends Logging {
  private type Key = (String, String)

  /** Of each piece the write that counts: it is complete here, or the driver knows of it. */
  private val counting = mutable.LinkedHashMap.empty[Key, HeldPiece]

  /** Writes that Spark has begun; it may give each of them up, and what counts stays. */
  private val begun = mutable.LinkedHashSet.empty[HeldPiece]
  private val attempts = mutable.Map.empty[Key, Attempts]
  private val copied = mutable.Map.empty[String, Long]
  private val uploading = new ThreadLocal[Upload]
  private var localBytes = 0L
  private var begins = 0L

  /** What the calling thread uploads: what a batch waits for, or a snapshot for later. */
  private final class Upload(val expected: Option[Expected])

  /** A changelog, or its checksum: written here first. */
  def create(
      run: String,
      file: Path,
      what: StateFile,
      files: CheckpointFileManager,
      conf: Configuration): CancellableFSDataOutputStream = {
    val settings = new CommitSettings(conf)
    StepTimes.timed(run, "wait for space")(awaitSpace(settings))
    val local = new File(LocalFolder.of(settings), UUID.randomUUID().toString)
    val out = new LocalFile(local)
    val joined = synchronized {
      val key = (run, what.piece)
      add(open(key, what).getOrElse(begin(run, what, files, conf)), file, what, Some(local))
    }
    new HeldStream(joined.piece, joined.member, local, out)
  }

  /**
   * A snapshot: its other files are garbage until this one names them. It enters the location when
   * the offsets of its batch are durable, or, if the batch is recovered without it, when the batch
   * is there.
   */
  def createSnapshot(
      run: String,
      file: Path,
      what: StateFile,
      files: CheckpointFileManager,
      conf: Configuration): CancellableFSDataOutputStream = {
    val inner = files.createAtomic(file, overwriteIfPossible = true)
    val joined = synchronized(required(run, file, what, files, conf))
    val entered = new SnapshotAppend(run, file, what, files, conf)
    new SnapshotStream(run, what, joined, inner, new CommitSettings(conf), entered)
  }

  /**
   * The piece is not complete before this snapshot of it is, though its changelog may be. Attempts
   * at one batch may give their snapshots one name: the one that was expected last counts.
   */
  def expectSnapshot(run: String, file: Path, what: StateFile, conf: Configuration): Expected = {
    val files = Location.direct(file.getParent, conf)
    synchronized {
      val key = (run, what.piece)
      val piece = open(key, what)
        .orElse(announced(key).filterNot(_.members.contains(what.relative)))
        .getOrElse(begin(run, what, files, conf))
      val expected = add(piece, file, what, None)
      publish(piece)
      expected
    }
  }

  /** The snapshot that the body makes is the one that was expected; None: no batch waits for it. */
  def upload(expected: Option[Expected])(body: => Unit): Unit = {
    uploading.set(new Upload(expected))
    try body
    finally uploading.remove()
  }

  /** The driver waits for the newest write of a piece that it was told of; this one is coming. */
  def announce(run: String, what: StateFile): Unit = {
    val key = (run, what.piece)
    val piece = synchronized {
      begun.filter(one => keyOf(one) == key).lastOption.foreach(publish)
      counting.get(key)
    }
    piece.foreach(tellWritten)
  }

  private def tellWritten(piece: HeldPiece): Answer = ReleaseQueues.ask(
    Wrote(
      piece.run,
      PieceWritten(piece.what.batch, piece.what.piece, ReleaseQueues.writer, piece.generation)))

  /** The local copy of a file of this run, if it is held here and complete. */
  def localCopy(run: String, what: StateFile): Option[File] = synchronized {
    for {
      piece <- counting.get((run, what.piece))
      member <- piece.members.get(what.relative) if member.isClosed
      local <- member.local
    } yield local
  }

  /** Whether a file of this name was begun by this run, here. */
  def has(run: String, what: StateFile): Boolean = synchronized {
    val key = (run, what.piece)
    (counting.get(key) ++ begun.filter(keyOf(_) == key)).exists(_.members.contains(what.relative))
  }

  /** How many bytes of state this JVM holds, of all runs. */
  def heldBytes: Long = synchronized(localBytes)

  /** Nothing that this run wrote to the folder before `batch` is still on its way. */
  def isDurable(run: String, folder: String, batch: Long): Boolean =
    synchronized(late(run, folder, batch).isEmpty)

  /** Returns when nothing that this run wrote to the folder before `batch` is still on its way. */
  def awaitDurable(run: String, folder: String, batch: Long, limitMs: Long): Unit = {
    val end = System.nanoTime() + limitMs * 1000000
    synchronized {
      while (late(run, folder, batch).isDefined && System.nanoTime() < end) wait(20)
      late(run, folder, batch).foreach { piece =>
        throw new TryAgain(
          "commit_late",
          s"the state of batch ${piece.what.batch} in $folder is not durable after " +
            s"${limitMs / 1000} s; see the driver's log for the store that does not take it")
      }
    }
  }

  private def late(run: String, folder: String, batch: Long): Option[HeldPiece] =
    counting.values.find { piece =>
      piece.run == run && piece.what.folder == folder && piece.what.batch < batch &&
      !piece.isDurable
    }

  private def keyOf(piece: HeldPiece): Key = (piece.run, piece.what.piece)

  /** The newest write under way that does not have this file yet. */
  private def open(key: Key, what: StateFile): Option[HeldPiece] =
    begun.filter(one => keyOf(one) == key && !one.members.contains(what.relative)).lastOption

  /** The write that counts, if the driver was told only that it is coming. */
  private def announced(key: Key): Option[HeldPiece] = counting.get(key).filterNot(_.isTold)

  private def begin(
      run: String, what: StateFile, files: CheckpointFileManager, conf: Configuration): HeldPiece = {
    begins += 1
    val all = attempts.getOrElseUpdate((run, what.piece), new Attempts(run, what))
    val piece = new HeldPiece(all, begins, files, conf)
    begun += piece
    piece
  }

  private def add(piece: HeldPiece, file: Path, what: StateFile, local: Option[File]): Expected = {
    val member = new Member(file, what, local)
    piece.members(what.relative) = member
    new Expected(piece, member)
  }

  /** What a snapshot is part of, if its batch waits for it; else it is one for later. */
  private def required(
      run: String, file: Path, what: StateFile, files: CheckpointFileManager,
      conf: Configuration): Option[Joined] = {
    val key = (run, what.piece)
    def in(piece: HeldPiece): Joined =
      piece.members.get(what.relative).filter(_ => piece.generation > 0) match {
        case Some(there) =>
          there.isClosed = false
          new Joined(new Expected(piece, there), isExpected = true, isKept = true)
        case None =>
          new Joined(add(piece, file, what, None), isExpected = piece.generation > 0, isKept = false)
      }
    Option(uploading.get) match {
      case Some(known) if known.expected.forall(_.member.what == what) =>
        known.expected.map(new Joined(_, isExpected = true, isKept = true))
      case Some(known) => known.expected.map(one => in(one.piece))
      case None =>
        def isFirst = what.batch > copiedOf(run) && !attempts.get(key).exists(_.isLogged)
        announced(key)
          .orElse(open(key, what))
          .orElse(Option.when(isFirst)(begin(run, what, files, conf)))
          .map(in)
    }
  }

  /** From here on this write counts, and the one before it is superseded. */
  private def publish(piece: HeldPiece): Unit = {
    begun -= piece
    if (piece.generation == 0) {
      counting.get(keyOf(piece)).foreach(forget)
      piece.attempts.generation += 1
      piece.attempts.newest = piece.begunAt
      piece.generation = piece.attempts.generation
      counting(keyOf(piece)) = piece
    }
    piece.members.values.filter(_.local.isDefined).foreach { member =>
      piece.attempts.isLogged = true
      if (member.isClosed && !member.isCounted) {
        member.isCounted = true
        localBytes += member.bytes
      }
    }
  }

  private[commit] def closed(piece: HeldPiece, member: Member, bytes: Long, ns: Long): Unit = {
    val isComplete = synchronized {
      member.isClosed = true
      member.bytes = bytes
      piece.steps("local write") = piece.steps.getOrElse("local write", 0L) + ns
      if (!piece.has(member) || !mayCount(piece)) {
        begun -= piece
        delete(member)
      } else {
        if (piece.isComplete) piece.isTold = true
        if (piece.isTold || piece.generation > 0) publish(piece)
      }
      piece.isTold && counts(piece)
    }
    if (isComplete) {
      Failpoint.reach("after_local", piece.run, piece.what.batch)
      tellWritten(piece) match {
        case standing: Standing =>
          forgetCopied(piece.run, standing)
          Copier.take(piece, standing)
        case NotReleasing => synchronized(forget(piece))
      }
    }
  }

  private[commit] def cancelled(piece: HeldPiece, member: Member): Unit = synchronized {
    if (piece.has(member)) piece.members.remove(member.what.relative)
    delete(member)
    if (piece.members.isEmpty) {
      begun -= piece
      forget(piece)
    }
    notifyAll()
  }

  /** Nobody waits for the piece any more: its batch was committed without it. */
  private[commit] def dropped(piece: HeldPiece): Unit = synchronized(forget(piece))

  /** With a log the local copy serves loads until the location has the file. */
  private[commit] def durable(piece: HeldPiece, isInLocation: Boolean): Unit = synchronized {
    piece.isDurable = true
    if (isInLocation) forget(piece)
    notifyAll()
  }

  private[commit] def forgetCopied(run: String, standing: Standing): Unit = synchronized {
    copied(run) = math.max(copiedOf(run), standing.copied)
    def isOver(what: StateFile): Boolean = what.batch <= standing.copied
    counting.values.filter(p => p.run == run && p.isDurable && isOver(p.what)).toSeq.foreach(forget)
    begun.filter(p => p.run == run && isOver(p.what)).toSeq.foreach(giveUp)
    attempts.filterInPlace((_, one) => one.run != run || !isOver(one.what))
    ()
  }

  /** Nothing more of the run is released. */
  def forgetRun(run: String): Unit = synchronized {
    counting.values.filter(_.run == run).toSeq.foreach(forget)
    begun.filter(_.run == run).toSeq.foreach(giveUp)
    attempts.filterInPlace((_, one) => one.run != run)
    copied.remove(run)
    ()
  }

  /** No later attempt expects a snapshot of the same name. */
  private[commit] def isCurrent(expected: Expected): Boolean = synchronized {
    expected.piece.has(expected.member) && mayCount(expected.piece)
  }

  private[commit] def isSuperseded(piece: HeldPiece): Boolean = synchronized(!counts(piece))

  private def counts(piece: HeldPiece): Boolean = counting.get(keyOf(piece)).contains(piece)

  /** It counts, or will when it is complete: no later attempt does, nor is its batch over. */
  private def mayCount(piece: HeldPiece): Boolean =
    if (piece.generation > 0) counts(piece)
    else piece.begunAt > piece.attempts.newest && piece.what.batch > copiedOf(piece.run)

  private def copiedOf(run: String): Long = copied.getOrElse(run, Long.MinValue)

  private def giveUp(piece: HeldPiece): Unit = {
    begun -= piece
    piece.members.values.foreach(delete)
  }

  private def forget(piece: HeldPiece): Unit = {
    if (counts(piece)) counting.remove(keyOf(piece))
    piece.members.values.foreach(delete)
    notifyAll()
  }

  private def delete(member: Member): Unit = member.local.foreach { local =>
    NioFiles.deleteIfExists(local.toPath)
    if (member.isCounted) localBytes -= member.bytes
    member.isCounted = false
  }

  /**
   * A local copy of what the log has can be done without: whoever loads it waits for the location,
   * as on another executor. The tasks of one batch may need more room than there is.
   */
  private def makeRoom(): Boolean = {
    val spare = counting.values.find(piece => piece.isDurable && piece.members.values.exists(_.isCounted))
    spare.foreach(forget)
    spare.isDefined
  }

  private def awaitSpace(settings: CommitSettings): Unit = synchronized {
    val end = System.nanoTime() + settings.retryMs * 1000000
    def isFull = localBytes > settings.localBytesMax
    while (isFull && System.nanoTime() < end) if (!makeRoom()) wait(50)
    if (isFull) {
      throw new TryAgain(
        "local_space",
        s"$localBytes bytes of state wait to become durable, more than " +
          s"${Keys.LocalMaxBytes} = ${settings.localBytesMax}, for ${settings.retryMs / 1000} " +
          "s; the checkpoint store is too slow for this query, or does not answer")
    }
  }
}
