// Scala because: it reads RocksDB's native iterator, row by row, for a task.
package org.apache.spark.sql.execution.streaming.state

import org.apache.spark.TaskContext
import org.apache.spark.util.NextIterator
import org.rocksdb.{ReadOptions, RocksDB => NativeRocksDB, RocksIterator, Slice}

/** The rows of a family in their order, as they were when this was made. */
private[state] trait StoredRows {
  def isValid: Boolean

  /** Without the prefix of the family. */
  def key: Array[Byte]

  /** Read from the store when it is asked for. */
  def value: Array[Byte]

  def advance(): Unit

  def close(): Unit
}

/** Rows read without taking a place in RocksDB's cache from what tasks look up. */
private[state] final class UncachedRows private (
    native: RocksIterator,
    options: ReadOptions,
    bound: Option[Slice],
    prefixBytes: Int)
    extends StoredRows {

  private var isClosed = false
  private var current: Array[Byte] = null

  override def isValid: Boolean = !isClosed && native.isValid

  override def key: Array[Byte] = {
    if (current == null) {
      val whole = native.key()
      current = if (prefixBytes == 0) whole else whole.drop(prefixBytes)
    }
    current
  }

  override def value: Array[Byte] = native.value()

  override def advance(): Unit = {
    current = null
    native.next()
  }

  override def close(): Unit = if (!isClosed) {
    isClosed = true
    native.close()
    options.close()
    bound.foreach(_.close())
  }
}

private[state] object UncachedRows {

  /** Closed with the task, if not before: a store must not be closed under an iterator. */
  def of(store: NativeRocksDB, prefix: Array[Byte]): UncachedRows = {
    val options = new ReadOptions().setFillCache(false)
    val bound = RocksDB.prefixUpperBound(prefix).map(new Slice(_))
    bound.foreach(options.setIterateUpperBound)
    val native = store.newIterator(options)
    if (prefix.isEmpty) native.seekToFirst() else native.seek(prefix)
    val rows = new UncachedRows(native, options, bound, prefix.length)
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => rows.close()))
    rows
  }

  def isEmpty(store: NativeRocksDB): Boolean = {
    val native = store.newIterator()
    try {
      native.seekToFirst()
      !native.isValid
    } finally native.close()
  }
}

/** The rows of Spark's own iterator. */
private[state] final class SparkRows(rows: NextIterator[ByteArrayPair]) extends StoredRows {
  private var current: Option[ByteArrayPair] = None

  override def isValid: Boolean = {
    if (current.isEmpty && rows.hasNext) current = Some(rows.next())
    current.isDefined
  }

  override def key: Array[Byte] = current.get.key

  override def value: Array[Byte] = current.get.value

  override def advance(): Unit = current = None

  override def close(): Unit = rows.closeIfNeeded()
}

/** All rows, as Spark's iterator gives them. */
private[state] final class AllRows(rows: StoredRows) extends NextIterator[ByteArrayPair] {
  private val pair = new ByteArrayPair

  override protected def getNext(): ByteArrayPair =
    if (rows.isValid) {
      pair.set(rows.key, rows.value)
      rows.advance()
      pair
    } else {
      finished = true
      null
    }

  override protected def close(): Unit = rows.close()
}

/** The rows whose time has passed, for an operator that removes each before it asks for the next. */
private[state] final class ExpiredRows(rows: StoredRows, known: FamilyTimes)
    extends NextIterator[ByteArrayPair] {

  private val pair = new ByteArrayPair

  override protected def getNext(): ByteArrayPair = {
    while (rows.isValid && !known.isExpired(rows)) rows.advance()
    if (rows.isValid) {
      pair.set(rows.key, rows.value)
      rows.advance()
      pair
    } else {
      known.ended()
      finished = true
      null
    }
  }

  override protected def close(): Unit = rows.close()
}

/** What a scan is given that could remove nothing. */
private[state] object NoRows {
  def iterator: NextIterator[ByteArrayPair] = new NextIterator[ByteArrayPair] {
    finished = true

    override protected def getNext(): ByteArrayPair = null

    override protected def close(): Unit = ()
  }
}
