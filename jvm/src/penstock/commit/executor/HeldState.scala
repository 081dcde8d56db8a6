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

import penstock.{Bug, Failpoint, TryAgain}
import penstock.checkpoint.location.{Location, StateFile}
import penstock.commit.channel.{Answer, NotReleasing, Standing, Wrote}
import penstock.settings.{CommitSettings, Keys}

/**
 * The state this JVM has written and that is not in the checkpoint location yet. A file is written
 * to the local folder first; once every file of a piece is complete the driver is told (ack 1), and
 * once it is durable again (ack 2). Only the run that wrote a file is served it from here.
 *
 * Each write of a piece has one state (HeldPieceState), which is changed here alone, under the lock
 * of this object; whoever waits for a state waits on it.
 */
final class HeldState(resources: ExecutorParts) extends Logging {
  import HeldPieceEvent._
  import HeldPieceState._

  private val byRun = mutable.LinkedHashMap.empty[String, HeldRun]
  private val uploading = new ThreadLocal[Upload]
  private var localBytes = 0L
  private var begins = 0L
  private val afterState = new AfterState(resources.clock)

  /** What the calling thread uploads: what a batch waits for, or a snapshot for later. */
  private final class Upload(val expected: Option[Expected])

  /** A changelog, or its checksum: written here first. */
  def create(
      run: String,
      path: Path,
      stateFile: StateFile,
      location: CheckpointFileManager,
      conf: Configuration): CancellableFSDataOutputStream = {
    val settings = new CommitSettings(conf)
    resources.steps.timed(run, "wait for space")(awaitSpace(settings))
    val local = new File(resources.localFolder.of(settings), UUID.randomUUID().toString)
    val out = new LocalFile(local)
    val expected = synchronized {
      val piece = of(run).open(stateFile).getOrElse(begin(run, stateFile, location, conf))
      add(piece, path, stateFile, Some(local))
    }
    new HeldStream(this, expected, local, out, resources.clock)
  }

  /**
   * A snapshot: its other files are garbage until this one names them. It enters the location when
   * the offsets of its batch are durable, or, if the batch is recovered without it, when the batch
   * is there.
   */
  def createSnapshot(
      run: String,
      path: Path,
      stateFile: StateFile,
      location: CheckpointFileManager,
      conf: Configuration): CancellableFSDataOutputStream = {
    val inner = location.createAtomic(path, overwriteIfPossible = true)
    val joined = synchronized(required(run, path, stateFile, location, conf))
    val append = new SnapshotAppend(resources, run, path, stateFile, location, conf)
    new SnapshotStream(resources, run, stateFile, joined, inner, new CommitSettings(conf), append)
  }

  /**
   * The piece is not complete before this snapshot of it is, though its changelog may be. Attempts
   * at one batch may give their snapshots one name: the one that was expected last counts.
   */
  def expectSnapshot(
      run: String,
      path: Path,
      stateFile: StateFile,
      conf: Configuration): Expected = {
    val location = Location.of(path.getParent, conf)
    synchronized {
      val piece = of(run)
        .open(stateFile)
        .orElse(of(run).announced(stateFile.piece).filterNot(_.files.contains(stateFile.relative)))
        .getOrElse(begin(run, stateFile, location, conf))
      val expected = add(piece, path, stateFile, None)
      move(piece, Announce)
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
  def announce(run: String, stateFile: StateFile): Unit = {
    val current = synchronized {
      of(run).begun(stateFile.piece).lastOption.foreach(move(_, Announce))
      of(run).current(stateFile.piece)
    }
    current.foreach(tellWritten)
  }

  private def tellWritten(piece: HeldPiece): Answer =
    resources.toDriver.ask(Wrote(piece.run, piece.written))

  /** The local copy of a file of this run, if it is held here and complete. */
  def localCopy(run: String, stateFile: StateFile): Option[File] = synchronized {
    for {
      held <- byRun.get(run)
      piece <- held.current(stateFile.piece)
      file <- piece.files.get(stateFile.relative) if file.isClosed
      local <- file.local
    } yield local
  }

  /** Whether a file of this name was begun by this run, here. */
  def has(run: String, stateFile: StateFile): Boolean = synchronized {
    byRun.get(run).exists { held =>
      (held.current(stateFile.piece) ++ held.begun(stateFile.piece))
        .exists(_.files.contains(stateFile.relative))
    }
  }

  /** How many bytes of state this JVM holds, of all runs. */
  def heldBytes: Long = synchronized(localBytes)

  /** The runs of which anything is kept here. */
  def runs: Set[String] = synchronized(byRun.keySet.toSet)

  /** Nothing that this run wrote to the folder before `batch` is still on its way. */
  def isDurable(run: String, folder: String, batch: Long): Boolean =
    synchronized(late(run, folder, batch).isEmpty)

  /** Returns when nothing that this run wrote to the folder before `batch` is still on its way. */
  def awaitDurable(run: String, folder: String, batch: Long, limitMs: Long): Unit = {
    resources.clock.await(this, limitMs)(late(run, folder, batch).isEmpty)
    checkDurable(run, folder, batch, limitMs)
  }

  /** Starts the work when the above would return: no thread waits for that. */
  def whenDurable(run: String, folder: String, batch: Long, limitMs: Long)(start: => Unit): Unit =
    synchronized(afterState.add(run, folder, limitMs)(late(run, folder, batch).isEmpty)(start))

  /** Starts what has waited for as long as it may; a heartbeat asks for it. */
  private[commit] def startLate(): Unit = synchronized(afterState.startLate())

  /** Throws if anything that this run wrote to the folder before `batch` is still on its way. */
  def checkDurable(run: String, folder: String, batch: Long, limitMs: Long): Unit =
    synchronized(late(run, folder, batch)).foreach { piece =>
      throw new TryAgain(
        "commit_late",
        s"the state of batch ${piece.stateFile.batch} in $folder is not durable after " +
          s"${limitMs / 1000} s; see the driver's log for the store that does not take it")
    }

  /** Returns whether nothing that this JVM wrote is still on its way, at the latest at the limit. */
  def awaitAllDurable(limitMs: Long): Boolean =
    resources.clock.await(this, limitMs)(!byRun.values.exists(_.isAnyLate))

  private def late(run: String, folder: String, batch: Long): Option[HeldPiece] =
    byRun.get(run).flatMap(_.late(folder, batch))

  private def of(run: String): HeldRun = byRun.getOrElseUpdate(run, new HeldRun(run))

  private def begin(
      run: String,
      stateFile: StateFile,
      location: CheckpointFileManager,
      conf: Configuration): HeldPiece = {
    begins += 1
    of(run).begin(stateFile, begins, location, conf)
  }

  private def add(
      piece: HeldPiece,
      path: Path,
      stateFile: StateFile,
      local: Option[File]): Expected = {
    val file = new HeldFile(path, stateFile, local)
    piece.files(stateFile.relative) = file
    new Expected(piece, file)
  }

  /** What a snapshot is part of, if its batch waits for it; else it is one for later. */
  private def required(
      run: String,
      path: Path,
      stateFile: StateFile,
      location: CheckpointFileManager,
      conf: Configuration): Option[Joined] = {
    def in(piece: HeldPiece): Joined =
      piece.files.get(stateFile.relative).filter(_ => piece.generation > 0) match {
        case Some(file) =>
          file.isClosed = false
          new Joined(new Expected(piece, file), isExpected = true, isKept = true)
        case None =>
          val expected = add(piece, path, stateFile, None)
          new Joined(expected, isExpected = piece.generation > 0, isKept = false)
      }
    Option(uploading.get) match {
      case Some(upload) if upload.expected.forall(_.file.stateFile == stateFile) =>
        upload.expected.map(new Joined(_, isExpected = true, isKept = true))
      case Some(upload) => upload.expected.map(expected => in(expected.piece))
      case None =>
        of(run)
          .announced(stateFile.piece)
          .orElse(of(run).open(stateFile))
          .orElse(Option.when(of(run).isFirstWrite(stateFile)) {
            begin(run, stateFile, location, conf)
          })
          .map(in)
    }
  }

  /** The one place where the state of a piece changes, and what follows from that is done. */
  private def move(piece: HeldPiece, event: HeldPieceEvent): Unit = {
    val before = piece.state
    piece.on(event)
    if (piece.state != before) {
      val held = of(piece.run)
      if (!before.isCurrent && piece.state.isCurrent) {
        held.current(piece.stateFile.piece).foreach(move(_, NewerWrite))
      }
      held.moved(piece, before)
      if (piece.state.isOver) piece.files.values.foreach(delete)
      notifyAll()
      afterState.startReady(piece.run, piece.stateFile.folder)
    }
    if (piece.state.isCurrent) count(piece)
  }

  private def count(piece: HeldPiece): Unit =
    piece.files.values.filter(_.local.isDefined).foreach { file =>
      piece.attempts.hasChangelog = true
      if (file.isClosed && !file.isCounted) {
        file.isCounted = true
        localBytes += file.bytes
      }
    }

  private[commit] def closed(expected: Expected, bytes: Long, ns: Long): Unit = {
    val (piece, file) = (expected.piece, expected.file)
    val isComplete = synchronized {
      file.isClosed = true
      file.bytes = bytes
      piece.stepsNs("local write") = piece.stepsNs.getOrElse("local write", 0L) + ns
      if (!piece.has(file) || piece.state.isOver) delete(file)
      else if (of(piece.run).mayBeCurrent(piece)) move(piece, FileClosed(piece.isWhole))
      else if (of(piece.run).isCopied(piece.stateFile)) move(piece, BatchCopied)
      else move(piece, NewerWrite)
      piece.state.isCurrent && piece.state != Announced
    }
    if (isComplete) {
      Failpoint.reach("after_local", piece.run, piece.stateFile.batch)
      tellWritten(piece) match {
        case standing: Standing =>
          batchesCopied(piece.run, standing)
          resources.copier.take(piece, standing)
        case NotReleasing => resources.forgetRun(piece.run)
      }
    }
  }

  private[commit] def cancelled(expected: Expected): Unit = synchronized {
    val (piece, file) = (expected.piece, expected.file)
    if (piece.has(file)) piece.files.remove(file.stateFile.relative)
    delete(file)
    if (piece.files.isEmpty) move(piece, Cancelled)
    notifyAll()
  }

  /** Something has happened to a piece that only its uploader, copier or appender can tell. */
  def tell(piece: HeldPiece, event: HeldPieceEvent): Unit =
    synchronized(move(piece, event))

  /** The driver has said how far the location is. */
  private[commit] def batchesCopied(run: String, standing: Standing): Unit = synchronized {
    byRun.get(run).foreach { held =>
      held.copied(standing.copied).foreach(move(_, BatchCopied))
      held.forgetAttempts()
    }
  }

  /** Nothing more of the run is released. */
  private[commit] def forgetRun(run: String): Unit = synchronized {
    byRun.get(run).foreach(_.pieces.foreach(move(_, RunEnded)))
    byRun.remove(run)
    afterState.startAll(run)
  }

  /** No later attempt expects a snapshot of the same name. */
  private[commit] def isCurrent(expected: Expected): Boolean = synchronized {
    expected.piece.has(expected.file) && byRun.get(expected.piece.run).exists {
      _.mayBeCurrent(expected.piece)
    }
  }

  /** Throws where what is kept here contradicts itself; for tests. */
  def check(): Unit = synchronized {
    byRun.values.foreach(_.check())
    val counted = byRun.values.flatMap(_.pieces).flatMap(_.files.values).filter(_.isCounted)
    if (counted.map(_.bytes).sum != localBytes) {
      throw new Bug("held_bytes", s"${counted.map(_.bytes).sum} bytes are held, not $localBytes")
    }
  }

  private def delete(file: HeldFile): Unit = file.local.foreach { local =>
    NioFiles.deleteIfExists(local.toPath)
    if (file.isCounted) localBytes -= file.bytes
    file.isCounted = false
  }

  /**
   * A local copy of what the log has can be done without: whoever loads it reads it there, as on
   * another executor. The tasks of one batch may need more room than there is.
   */
  private def makeRoom(): Boolean = {
    val spare = byRun.values.flatMap(_.spare).headOption
    spare.foreach(move(_, SpaceNeeded))
    spare.isDefined
  }

  private def awaitSpace(settings: CommitSettings): Unit = {
    def isFull: Boolean = localBytes > settings.localBytesMax
    val hasSpace = resources.clock.await(this, settings.retryMs) {
      while (isFull && makeRoom()) ()
      !isFull
    }
    if (!hasSpace) {
      throw new TryAgain(
        "local_space",
        s"$heldBytes bytes of state wait to become durable, more than " +
          s"${Keys.LocalMaxBytes} = ${settings.localBytesMax}, for ${settings.retryMs / 1000} " +
          "s; the checkpoint store is too slow for this query, or does not answer")
    }
  }
}
