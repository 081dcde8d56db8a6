// Scala because: Spark's stream thread and the acks of all tasks meet in this object of the
// driver's JVM.
package penstock.commit.driver

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging

import penstock.{Failpoint, Fenced, TryAgain}
import penstock.commit._
import penstock.commit.channel._
import penstock.settings.CommitSettings
import penstock.wire.{FileEntry, LogLimits}

/**
 * The release queue of one run, on the driver: holds what Spark has written, asks Release what may
 * become durable, and has it done by the workers. The stream thread waits here only where the
 * order demands it. Every method may be called from any thread; none blocks but those named await.
 */
final class ReleaseQueue(
    val query: String,
    val run: String,
    val instance: Option[Long],
    first: Long,
    recorded: Boolean,
    store: Store,
    releasers: Workers,
    followers: Workers,
    settings: CommitSettings,
    changes: Changes,
    onFailure: Throwable => Unit,
    snapshots: Option[Snapshots] = None,
    limits: LogLimits = LogLimits.Unnamed,
    offsetsInMarker: Boolean = false)
    extends Logging {

  private val clock = changes.clock
  val steps = new StepTotals(clock)
  val startedNs: Long = clock.nanos
  private val release = new Release(first, recorded, instance.isDefined, settings.behind, offsetsInMarker)
  private val releaseWait = new ReleaseWait(query, clock, settings.stallMs)
  private val held = new ConcurrentHashMap[String, Array[Byte]]()
  private val entries = new ConcurrentHashMap[PieceDurable, Seq[FileEntry]]()
  private val placed = new ConcurrentHashMap[String, Long]()
  private val named = new ConcurrentHashMap[Long, Named]()
  @volatile private var failure: Option[Throwable] = None
  @volatile private var isClosed = false

  /** Effects that were handed to the workers and are not over. */
  private val underWay = mutable.Set.empty[Performing]
  private var atRest = Option.empty[() => Unit]

  def offsetsWritten(batch: Long, bytes: Array[Byte]): Unit = {
    held.put(s"offsets/$batch", bytes)
    tell(OffsetsWritten(batch))
  }

  def commitWritten(batch: Long, bytes: Array[Byte], pieces: Set[String]): Unit = {
    held.put(s"commits/$batch", bytes)
    tell(CommitWritten(batch, pieces))
  }

  /** The bytes of a file that is written but not in the location yet. */
  def pending(path: String): Option[Array[Byte]] = Option(held.get(path))

  /** Names and sizes of the files of a folder that are written but not in the location yet. */
  def pendingIn(folder: String): Seq[(String, Long)] = held.asScala.toSeq.collect {
    case (path, bytes) if path.startsWith(folder + "/") =>
      (path.stripPrefix(folder + "/"), bytes.length.toLong)
  }

  /** The last batch that is in the location, with all that belongs to it. */
  def copied: Long = synchronized(release.copied)

  def deleteAsked(path: String): Unit = tell(DeleteAsked(path))

  def writerLost(writer: String): Unit = tell(WriterLost(writer))

  def receive(message: Message): Answer = {
    message match {
      case Wrote(_, event) => tell(event)
      case MadeDurable(_, pieces) =>
        pieces.foreach { piece =>
          if (piece.entries.nonEmpty) entries.put(piece.event, piece.entries)
          took(piece.stepsNs)
          tell(piece.event)
        }
      case Took(_, stepsNs) => took(stepsNs)
      case Placed(_, batch, paths) =>
        releaseWait.progressed()
        paths.foreach(path => placed.put(path, batch))
        changed()
      case GaveUp(_, reason, true) => fail(new Fenced(reason))
      case GaveUp(_, reason, false) => fail(new TryAgain("store_unavailable", reason))
      case SnapshotAppended(_, snapshot) => synchronized(snapshots.foreach(_.appended(snapshot)))
      case HowFar(_) | WhereIs(_, _, _) | IsHeld(_, _) | SnapshotDue(_, _) | Prefetched(_, _) =>
    }
    standing(message)
  }

  private def took(stepsNs: Map[String, Long]): Unit =
    stepsNs.foreach { case (step, ns) => steps.took(step, ns) }

  /** Returns when the batch may be computed: the one before the last is committed. */
  def awaitCompute(batch: Long): Unit = await("wait to compute")(release.mayCompute(batch))

  /** Returns when the offsets of the batch are durable: from then on it is never cut anew. */
  def awaitReleased(batch: Long): Unit = await("wait for release")(release.released >= batch)

  def awaitCommitted(batch: Long): Unit = await("wait for commit")(release.committed >= batch)

  def isCommitted: Boolean = synchronized(release.isCommitted)

  /** Returns when everything Spark counts as done is committed, or what is `awaitedToo` is there. */
  def awaitAllCommitted(awaitedToo: => Boolean = false): Unit =
    await("wait for commit")(release.isCommitted || awaitedToo)

  def isIdle: Boolean = synchronized(release.isIdle) || failure.isDefined

  /** Waits until everything handed over is in the location, or the time is up; false if it is. */
  def drain(limitMs: Long): Boolean = {
    clock.await(this, limitMs)(release.isIdle || failure.isDefined)
    synchronized(release.isIdle)
  }

  /** Calls `andThen` once nothing is left to do, and no effect is under way. */
  private[commit] def whenAtRest(andThen: () => Unit): Unit = {
    synchronized { atRest = Some(andThen) }
    callIfAtRest()
  }

  private def callIfAtRest(): Unit = {
    val due = synchronized {
      val called = atRest.filter(_ => underWay.isEmpty && (release.isIdle || failure.isDefined))
      if (called.isDefined) atRest = None
      called
    }
    due.foreach(_())
  }

  /** Throws what has stopped this run, if anything has. */
  def check(): Unit = failure.foreach(e => throw e)

  /** Nothing more is released: the run has ended. */
  def close(): Unit = {
    isClosed = true
    changed()
  }

  private[penstock] def changed(): Unit = {
    synchronized(notifyAll())
    changes.happened()
  }

  private def standing(message: Message): Standing = synchronized {
    val asked = message match {
      case WhereIs(_, batch, piece) if release.isLost(batch, piece) => Whereabouts.Lost
      case WhereIs(_, batch, piece) if release.isUnderWay(batch) && failure.isEmpty =>
        durable(batch, piece).getOrElse(Whereabouts.OnItsWay)
      case IsHeld(_, batch) if release.hasLost(batch) => Whereabouts.Lost
      case IsHeld(_, batch) if release.isHeld(batch) || isAnyUnsynced(batch) => Whereabouts.OnItsWay
      case _ => Whereabouts.Unknown
    }
    val newest = message match {
      case SnapshotDue(_, folder) => snapshots.flatMap(_.of(folder))
      case _ => None
    }
    Standing(
      query,
      instance,
      release.released,
      release.committed,
      release.copied,
      failure.map(_.getMessage),
      asked,
      snapshots.isDefined,
      newest,
      limits)
  }

  /**
   * Where a piece is, if it is durable: in the log, else in the location. Once a marker is decided on,
   * that is what it names: it syncs nothing that is appended later.
   */
  private def durable(batch: Long, piece: String): Option[Whereabouts] = for {
    files <- Option(named.get(batch)).fold(filesByPiece(batch))(_.pieces).get(piece)
    if !isUnsynced(batch, files)
  } yield if (files.isEmpty) Whereabouts.InLocation else Whereabouts.InLog(files)

  /** The log has taken these files and may lose them: its sync comes with the marker. */
  private def isUnsynced(batch: Long, files: Seq[FileEntry]): Boolean =
    release.committed < batch && files.exists(_.start.isDefined)

  private def isAnyUnsynced(batch: Long): Boolean = entries.asScala.exists { case (piece, files) =>
    piece.batch == batch && isUnsynced(batch, files)
  }

  private def tell(event: Event): Unit = if (!isClosed) {
    releaseWait.progressed()
    val stops = synchronized {
      val asked = release.on(event)
      // Named when the marker is decided on: a late attempt may write a piece anew after that.
      asked.foreach {
        case PutMarker(batch) =>
          val winners = release.durableWrites(batch)
          val offsets = Option.when(release.released < batch)(held.get(s"offsets/$batch"))
          val kept = snapshots.map(_.take(batch, winners.contains))
          named.put(batch, Named(filesByPiece(batch), kept, offsets))
        case _ =>
      }
      val reasons = asked.collect { case Stop(reason) => reason }
      if (reasons.isEmpty) underWay ++= asked.map(new Performing(_))
      reasons
    }
    changed()
    stops.foreach(reason => fail(new TryAgain("commit_stopped", s"query $query: $reason")))
    submitDue()
  }

  /** A thread may end before it has handed out all that was asked for: then the next one does. */
  private def submitDue(): Unit = synchronized {
    underWay.filterNot(_.isSubmitted).foreach { work =>
      work.effect match {
        case CopyBatch(_) | Delete(_) => followers.submit(work)
        case _ => releasers.submit(work)
      }
      work.isSubmitted = true
    }
  }

  /** The files in the log of each durable piece; none of those that went to the location. */
  private def filesByPiece(batch: Long): Map[String, Seq[FileEntry]] =
    release.durableWrites(batch).map { case (piece, (writer, generation)) =>
      piece -> Option(entries.get(PieceDurable(batch, piece, writer, generation))).getOrElse(Nil)
    }

  private def await(step: String)(ready: => Boolean): Unit = {
    check()
    if (!synchronized(ready)) steps.timed(step) {
      releaseWait.await(this, step, release.awaited)(ready || failure.isDefined).foreach(fail)
      check()
    }
  }

  private def fail(why: Throwable): Unit = {
    val isFirst = synchronized {
      val first = failure.isEmpty
      if (first) failure = Some(why)
      first
    }
    changed()
    if (isFirst) {
      logError(s"query $query stops: nothing more of it is released", why)
      onFailure(why)
      callIfAtRest()
    }
  }

  /** What writers have placed, for the copy of a batch to wait for. */
  private object placedFiles extends PlacedFiles {
    override def has(path: String): Boolean = placed.containsKey(path)

    override def await(paths: Seq[String], limitMs: Long): Unit = {
      clock.await(ReleaseQueue.this, limitMs)(paths.forall(has) || isClosed)
      ()
    }
  }

  /** One effect, repeated until it is done or cannot be done. */
  private final class Performing(val effect: Effect) extends Retrying(settings, clock) {
    var isSubmitted = false
    @volatile private var isTold = false

    override def name: String = s"$effect of query $query"

    override protected def isPointless: Boolean = isClosed

    override def perform(): Unit = {
      super.perform()
      ReleaseQueue.this.synchronized { underWay -= this }
      callIfAtRest()
    }

    /**
     * Nothing that it takes to do it again is forgotten before it is told: a thread may end anywhere
     * before that, and another begins from the start.
     */
    override protected def once(): Unit =
      try {
        if (!isTold) {
          steps.timed(ReleaseSteps.stepOf(effect))(put())
          tell(Done(effect))
          isTold = true
        }
        effect match {
          case PutCommit(batch) => forget(batch)
          case CopyBatch(batch) => forget(batch)
          case _ =>
        }
      } finally releaseWait.progressed() // A try that fails has a limit, and an error, of its own.

    override protected def giveUp(e: Throwable): Unit = {
      val reason = if (isFinal(e)) e.getMessage else untakenReason(e)
      fail(if (isFinal(e)) ReleaseSteps.refusal(e) else new TryAgain("store_unavailable", reason, e))
      tell(Failed(effect, reason))
    }

    private def untakenReason(e: Throwable): String =
      s"${store.name} does not take $effect of query $query: ${e.getMessage}; it was tried for " +
        s"${settings.retryMs / 1000} s. Make it writable again and restart the query: it goes on " +
        "from the last durable batch"

    private def put(): Unit = effect match {
      case PutOffsets(batch) =>
        Failpoint.reach("before_release", query, batch)
        store.putOffsets(batch, held.get(s"offsets/$batch"))
        Failpoint.reach("after_release", query, batch)
      case PutMarker(batch) =>
        if (named.get(batch).offsets.isDefined) Failpoint.reach("before_release", query, batch)
        Failpoint.reach("before_marker", query, batch)
        store.putMarker(batch, held.get(s"commits/$batch"), named.get(batch))
        Failpoint.reach("after_marker", query, batch)
      case PutCommit(batch) =>
        Failpoint.reach("before_commit", query, batch)
        store.putCommit(batch, held.get(s"commits/$batch"))
        Failpoint.reach("after_commit", query, batch)
      case CopyBatch(batch) =>
        Failpoint.reach("before_copy", query, batch)
        store.copy(batch, placedFiles)
        Failpoint.reach("after_copy", query, batch)
      case Delete(path) =>
        Failpoint.reach("before_delete", query, ReleaseSteps.batchOf(path))
        store.delete(path)
      case Stop(_) =>
    }

    private def forget(batch: Long): Unit = {
      store.forget(batch)
      held.remove(s"offsets/$batch")
      held.remove(s"commits/$batch")
      named.remove(batch)
      placed.values.removeIf(_ <= batch)
      entries.keySet.removeIf(_.batch <= batch)
      ()
    }
  }
}
