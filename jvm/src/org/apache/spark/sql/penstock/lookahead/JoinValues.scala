// Scala because: it makes the bytes by which Spark's joins read their state.
package org.apache.spark.sql.penstock.lookahead

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Literal, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

import penstock.prefetch.{Candidate, FollowUp, HintBatch, HintExpiry}

/**
 * The rows that a join keeps of a key, once their number is known: each is read by the key and its
 * index.
 */
private[lookahead] final case class JoinValues(
    run: String,
    store: String,
    family: String,
    candidate: Candidate,
    keyTypes: Seq[DataType])
    extends FollowUp {
  import JoinValues._

  /** Not for two threads at once. */
  @transient private lazy val withIndex: UnsafeProjection = UnsafeProjection.create(
    keyTypes.zipWithIndex.map { case (kind, index) => BoundReference(index, kind, nullable = true) } :+
      Literal(0L))

  override def after(
      key: Array[Byte], value: Array[Byte], atMs: Long, due: HintExpiry): Option[HintBatch] = {
    val number = math.min(numberIn(value), ValuesMax)
    Option.when(number > 0) {
      val keys = synchronized(keysOf(key, number.toInt))
      HintBatch(run, store, family, candidate, keys, Array.fill(keys.length)(atMs), due)
    }
  }

  private def keysOf(key: Array[Byte], number: Int): Array[Array[Byte]] = {
    val row = new UnsafeRow(keyTypes.size)
    val offset = Platform.BYTE_ARRAY_OFFSET + TaskHints.VersionBytes
    row.pointTo(key, offset.toLong, key.length - TaskHints.VersionBytes)
    val indexed = withIndex(row)
    Array.tabulate(number) { index =>
      indexed.setLong(keyTypes.size, index.toLong)
      TaskHints.encoded(indexed)
    }
  }
}

private[lookahead] object JoinValues {

  def of(source: HintSource, partition: Int, values: StoreRead): JoinValues = JoinValues(
    source.run,
    source.location.store(partition, values.store).storeId.storeCheckpointLocation().toString,
    values.family,
    source.candidate,
    source.keyTypes)

  /** A key with more rows than this is read row by row beyond them. */
  val ValuesMax = 1024L

  /** The value is a row of one number. */
  def numberIn(value: Array[Byte]): Long =
    if (value == null) 0
    else {
      val row = new UnsafeRow(1)
      val offset = Platform.BYTE_ARRAY_OFFSET + TaskHints.VersionBytes
      row.pointTo(value, offset.toLong, value.length - TaskHints.VersionBytes)
      row.getLong(0)
    }
}
