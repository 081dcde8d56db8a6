package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Keys are a name and a number, values a number. */
object Rows {
  type Pairs = Map[(String, Int), Int]

  val keySchema: StructType = new StructType().add("name", StringType).add("number", IntegerType)
  val valueSchema: StructType = new StructType().add("value", IntegerType)
  val prefixSchema: StructType = new StructType().add("name", StringType)
  val moments: StructType = new StructType().add("moment", LongType, nullable = false)

  val plain: KeyStateEncoderSpec = NoPrefixKeyStateEncoderSpec(keySchema)
  val byPrefix: KeyStateEncoderSpec = PrefixKeyScanStateEncoderSpec(keySchema, 1)
  val byRange: KeyStateEncoderSpec = RangeKeyScanStateEncoderSpec(moments, Seq(0))

  def key(name: String, number: Int): UnsafeRow =
    row(keySchema, UTF8String.fromString(name), number)

  def key(pair: (String, Int)): UnsafeRow = key(pair._1, pair._2)

  def value(number: Int): UnsafeRow = row(valueSchema, number)

  def prefix(name: String): UnsafeRow = row(prefixSchema, UTF8String.fromString(name))

  def moment(at: Long): UnsafeRow = row(moments, at)

  def pair(row: UnsafeRow): (String, Int) = (row.getUTF8String(0).toString, row.getInt(1))

  def number(row: UnsafeRow): Option[Int] = Option(row).map(_.getInt(0))

  /** Reads an iterator to its end; its rows are reused, so each is taken apart at once. */
  def pairs(rows: StateStoreIterator[UnsafeRowPair]): Pairs =
    try rows.map(row => pair(row.key) -> row.value.getInt(0)).toMap
    finally rows.close()

  def all(store: ReadStateStore): Pairs = pairs(store.iterator())

  def put(store: StateStore, rows: ((String, Int), Int)*): Unit =
    rows.foreach { case (k, v) => store.put(key(k), value(v)) }

  private def row(schema: StructType, fields: Any*): UnsafeRow =
    UnsafeProjection.create(schema).apply(InternalRow(fields: _*)).copy()
}
