// Scala because: it sees every row of a task, and makes the bytes by which state is read.
package org.apache.spark.sql.penstock.lookahead

import java.util.Arrays

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression, Predicate, UnsafeProjection, UnsafeRow}
import org.apache.spark.unsafe.Platform

import penstock.Clock
import penstock.commit.jvm.JvmResources
import penstock.prefetch.{HintBatch, HintExpiry, HotKeys, LogPosition, SketchOf}

/**
 * The hints of one task at one node. Keys are gathered into blocks, one for each partition of the
 * state, and a block is sent when it is full or the rows are over. A key that was hinted a moment
 * ago is not hinted again. Whatever fails, from the first row to the last, ends the hints of this
 * task and nothing else.
 */
private[lookahead] final class TaskHints(source: HintSource, partition: Int) extends Logging {
  import TaskHints._

  private val clock = Clock.System
  private var keys = Array.empty[KeyProjection]
  private lazy val route = HintRoute.open(source)
  private lazy val hotKeys: HotKeys = JvmResources.here.prefetch.hotKeys(
    SketchOf(source.run, source.location.operator, source.candidate, source.input, partition),
    source.hotThreshold)
  private lazy val recent = new Array[Array[Byte]](RecentKeys)
  private val blocks = mutable.HashMap.empty[Int, Block]
  private val beganMs = clock.wallMs
  private var firstMs = 0L
  private var rows = 0L
  private var hasFailed = false
  private var isOver = false

  private var readBy = Option.empty[LogPosition]
  guarded(begin())

  private def begin(): Unit = {
    keys = source.keys.map(new KeyProjection(_)).toArray
    source.ahead.foreach(ReadAhead.here.follow(_, partition))
    if (source.hintsHere) {
      if (source.reads.nonEmpty) JvmResources.here.prefetch.reads(source.run, source.reads)
      HintChannel.listen()
    }
  }

  /** The rows that come now wait in the log: the batch that reads up to there has read them all. */
  def comeBefore(position: LogPosition): Unit = {
    flush()
    readBy = Some(position)
    // What was hinted for rows of an earlier batch is hinted anew for those of a later one.
    Arrays.fill(recent.asInstanceOf[Array[AnyRef]], null)
  }

  /** A row passes: for a node that is no part of generated code. */
  def row(row: InternalRow): Unit = {
    passed()
    if (!hasFailed) {
      try {
        var index = 0
        while (index < keys.length) {
          keys(index).of(row)
          index += 1
        }
      } catch { case e: Throwable => failed(e) }
    }
  }

  /** The same of a node that is: it computes the keys itself. */
  def passed(): Unit = {
    if (rows == 0) firstMs = clock.wallMs
    rows += 1
  }

  def isOn: Boolean = !hasFailed

  /** `atMicros` is the event time; `NoTime` if there is none. Whoever calls it catches what it throws. */
  def add(key: UnsafeRow, keyPartition: Int, atMicros: Long): Unit = {
    val bytes = TaskHints.encoded(key)
    val index = Arrays.hashCode(bytes) & (RecentKeys - 1)
    if (hotKeys.isHot(bytes)) blocks.getOrElseUpdate(keyPartition, new Block).suppressed += 1
    else if (!Arrays.equals(recent(index), bytes)) {
      recent(index) = bytes
      val block = blocks.getOrElseUpdate(keyPartition, new Block)
      block.add(bytes, if (atMicros == NoTime) clock.wallMs else Math.floorDiv(atMicros, 1000L))
      if (block.isFull) send(keyPartition, block)
    }
  }

  /** What was gathered goes out now: whoever reads the state may be next. */
  def flush(): Unit = guarded {
    blocks.foreach { case (to, block) => if (!block.isEmpty) send(to, block) }
  }

  /** The rows are over. */
  def end(): Unit = if (!isOver) {
    isOver = true
    flush()
    if (rows > 0) source.times.add(PassTime.ofTask(beganMs, firstMs, clock.wallMs))
  }

  /** Ends the hints of the task; what must end the task itself is thrown on. */
  def failed(e: Throwable): Unit = e match {
    case NonFatal(_) =>
      if (!hasFailed) {
        logWarning(s"hints at ${source.candidate} end for this task, which goes on without them", e)
      }
      hasFailed = true
    case _ => throw e
  }

  private def guarded(act: => Unit): Unit = if (!hasFailed) {
    try act
    catch { case e: Throwable => failed(e) }
  }

  private def send(to: Int, block: Block): Unit = {
    val suppressed = block.takeSuppressed()
    val (hinted, atMs) = block.take()
    source.stores.foreach { read =>
      val id = source.location.store(to, read.store)
      val followUp = read.values.map(values => JoinValues.of(source, to, values))
      route.send(id, HintBatch(
        source.run, id.storeId.storeCheckpointLocation().toString, read.family, source.candidate,
        hinted, atMs, HintExpiry.of(source.candidate, source.batch, readBy), suppressed, followUp))
    }
  }

  /** One way to compute a key from a row, and what belongs to it. */
  private final class KeyProjection(bound: BoundKey) {
    private val conditions: Array[BasePredicate] = bound.conditions.map(Predicate.create(_)).toArray
    private val key = UnsafeProjection.create(bound.key)

    // No literal stands for what is missing: generated code would differ by its value.
    private val columns: Seq[Expression] = bound.partition.toSeq ++ bound.at
    private val rest = Option.when(columns.nonEmpty)(UnsafeProjection.create(columns))
    private val timeIndex = bound.partition.size

    def of(row: InternalRow): Unit = if (isMeant(row)) {
      rest match {
        case None => add(key(row), partition, NoTime)
        case Some(projection) =>
          val values = projection(row)
          val to = if (bound.partition.isDefined) values.getInt(0) else partition
          val hasTime = bound.at.isDefined && !values.isNullAt(timeIndex)
          add(key(row), to, if (hasTime) values.getLong(timeIndex) else NoTime)
      }
    }

    /** The next condition is looked at only where this one holds: on other rows it may fail. */
    private def isMeant(row: InternalRow): Boolean = {
      var index = 0
      while (index < conditions.length && conditions(index).eval(row)) index += 1
      index == conditions.length
    }
  }
}

private[lookahead] object TaskHints {

  /** Stands for an event time that is missing. */
  val NoTime: Long = Long.MinValue

  /** Keys of a block: large enough for a fetch to be worth its while, small enough to come soon. */
  val BlockKeys = 64

  /** A power of two. */
  val RecentKeys = 1024

  /** As `RocksDBStateEncoder` has it: a byte for the version, then the row. */
  def encoded(row: UnsafeRow): Array[Byte] = {
    val bytes = new Array[Byte](row.getSizeInBytes + VersionBytes)
    Platform.copyMemory(
      row.getBaseObject, row.getBaseOffset, bytes, Platform.BYTE_ARRAY_OFFSET + VersionBytes,
      row.getSizeInBytes.toLong)
    bytes
  }

  /** In front of each key and each value; the version is 0. */
  val VersionBytes = 1

  /** Keys of one partition that were not sent yet. */
  private final class Block {
    private val keys = new Array[Array[Byte]](BlockKeys)
    private val atMs = new Array[Long](BlockKeys)
    private var size = 0

    /** Keys that were not hinted because they are hot, since the last were sent. */
    var suppressed = 0L

    def isEmpty: Boolean = size == 0 && suppressed == 0

    def takeSuppressed(): Long = {
      val taken = suppressed
      suppressed = 0
      taken
    }

    def isFull: Boolean = size == BlockKeys

    def add(key: Array[Byte], time: Long): Unit = {
      keys(size) = key
      atMs(size) = time
      size += 1
    }

    def take(): (Array[Array[Byte]], Array[Long]) = {
      val taken = (keys.take(size), atMs.take(size))
      size = 0
      taken
    }
  }
}
