package penstock.commit

import java.io.{BufferedOutputStream, File, FileOutputStream, IOException}
import java.nio.file.{Files => NioFiles}
import java.util.UUID

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import penstock.{Failpoint, TryAgain}

/**
 * The state this JVM has written and that is not in the checkpoint location yet. A file is written
 * to the local folder first; once every file of a piece is complete the driver is told (ack 1), and
 * once it is durable again (ack 2). Only the run that wrote a file is served it from here.
 */
object HeldState extends Logging {
  private val pieces = mutable.LinkedHashMap.empty[(String, String), HeldPiece]
  private val generations = mutable.Map.empty[(String, String), Long]
  private val uploading = new ThreadLocal[Expected]
  private var localBytes = 0L

  /** A changelog, or its checksum: written here first. */
  def create(
      run: String,
      file: Path,
      what: StateFile,
      files: CheckpointFileManager,
      conf: Configuration): CancellableFSDataOutputStream = {
    val settings = new Settings(conf)
    awaitSpace(settings)
    val local = new File(LocalFolder.of(settings), UUID.randomUUID().toString)
    val joined = join(run, file, what, Some(local), files, conf)
    val out =
      try new BufferedOutputStream(new FileOutputStream(local))
      catch { case e: IOException => throw localFailure(local, e) }
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
    val mine = Option(uploading.get).filter(_.member.what == what)
    val there = synchronized(pieces.get((run, what.piece)))
    val isExpected = mine.isDefined || there.exists(_.members.contains(what.relative))
    val isNeeded = isExpected || there.forall(!_.isComplete)
    val member = mine.orElse(Option.when(isNeeded)(join(run, file, what, None, files, conf)))
    val entered = new SnapshotAppend(run, file, what, files, conf)
    new SnapshotStream(
      run, what, member, isExpected, mine.isDefined, inner, new Settings(conf), entered)
  }

  /**
   * The piece is not complete before this snapshot of it is, though its changelog may be. Attempts
   * at one batch may give their snapshots one name: the one that was expected last counts.
   */
  def expectSnapshot(run: String, file: Path, what: StateFile, conf: Configuration): Expected =
    join(run, file, what, None, Location.direct(file.getParent, conf), conf)

  /** The snapshot that the body makes is the one that was expected. */
  def upload(expected: Expected)(body: => Unit): Unit = {
    uploading.set(expected)
    try body
    finally uploading.remove()
  }

  /** The driver waits for the newest write of a piece that it was told of; this one is coming. */
  def announce(run: String, what: StateFile): Unit =
    synchronized(pieces.get((run, what.piece))).foreach(tellWritten)

  private def tellWritten(piece: HeldPiece): Answer = Releases.ask(
    Wrote(
      piece.run,
      PieceWritten(piece.what.batch, piece.what.piece, Releases.writer, piece.generation)))

  /** The local copy of a file of this run, if it is held here and complete. */
  def localCopy(run: String, what: StateFile): Option[File] = synchronized {
    for {
      piece <- pieces.get((run, what.piece))
      member <- piece.members.get(what.relative) if member.isClosed
      local <- member.local
    } yield local
  }

  /** Whether a file of this name was begun by this run, here. */
  def has(run: String, what: StateFile): Boolean = synchronized {
    pieces.get((run, what.piece)).exists(_.members.contains(what.relative))
  }

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
    pieces.values.find { piece =>
      piece.run == run && piece.what.folder == folder && piece.what.batch < batch &&
      !piece.isDurable && piece.isBegun
    }

  private def join(
      run: String,
      file: Path,
      what: StateFile,
      local: Option[File],
      files: CheckpointFileManager,
      conf: Configuration): Expected = synchronized {
    val key = (run, what.piece)
    // A file that is written once more begins the piece anew: what came before is superseded.
    val there = pieces.get(key).filterNot { piece =>
      piece.isComplete || piece.members.get(what.relative).exists(_.isClosed)
    }
    val piece = there.getOrElse {
      val generation = generations.getOrElse(key, 0L) + 1
      generations(key) = generation
      val before = pieces.get(key)
      before.foreach(forget)
      val fresh = before.fold(new HeldPiece(run, what, generation, files, conf, new Object)) {
        _.again(generation, files, conf)
      }
      pieces(key) = fresh
      fresh
    }
    val member = new Member(file, what, local)
    piece.members(what.relative) = member
    new Expected(piece, member)
  }

  private[commit] def closed(piece: HeldPiece, member: Member, bytes: Long, ns: Long): Unit = {
    val isComplete = synchronized {
      member.isClosed = true
      member.bytes = bytes
      piece.steps("local write") = piece.steps.getOrElse("local write", 0L) + ns / 1000000
      if (piece.has(member)) {
        if (member.local.isDefined) localBytes += bytes
        piece.isComplete
      } else {
        member.local.foreach(_.delete())
        false
      }
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
    member.local.foreach(_.delete())
    if (piece.members.isEmpty) pieces.remove((piece.run, piece.what.piece))
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
    pieces.values
      .filter(p => p.run == run && p.isDurable && p.what.batch <= standing.copied)
      .toSeq
      .foreach(forget)
  }

  private[commit] def forgetRun(run: String): Unit = synchronized {
    pieces.values.filter(_.run == run).toSeq.foreach(forget)
    generations.keySet.filter(_._1 == run).toSeq.foreach(generations.remove)
  }

  /** No later attempt expects a snapshot of the same name. */
  private[commit] def isCurrent(expected: Expected): Boolean = synchronized {
    expected.piece.has(expected.member) && !isSuperseded(expected.piece)
  }

  private[commit] def isSuperseded(piece: HeldPiece): Boolean = synchronized {
    !pieces.get((piece.run, piece.what.piece)).contains(piece)
  }

  private def forget(piece: HeldPiece): Unit = {
    if (pieces.get((piece.run, piece.what.piece)).contains(piece)) {
      pieces.remove((piece.run, piece.what.piece))
    }
    piece.members.values.foreach { member =>
      member.local.foreach { local =>
        if (NioFiles.deleteIfExists(local.toPath)) localBytes -= member.bytes
      }
    }
    notifyAll()
  }

  private def awaitSpace(settings: Settings): Unit = synchronized {
    val end = System.nanoTime() + settings.retryMs * 1000000
    while (localBytes > settings.localBytesMax && System.nanoTime() < end) wait(50)
    if (localBytes > settings.localBytesMax) {
      throw new TryAgain(
        "local_space",
        s"$localBytes bytes of state wait to become durable, more than " +
          s"${Settings.LocalBytesKey} = ${settings.localBytesMax}, for ${settings.retryMs / 1000} " +
          "s; the checkpoint store is too slow for this query, or does not answer")
    }
  }

  private[commit] def localFailure(local: File, e: IOException): IOException = new IOException(
    s"the state of a batch cannot be written to ${local.getParent} (${e.getMessage}); free space " +
      s"there, or set ${Settings.LocalFolderKey} to a folder with more",
    e)
}
