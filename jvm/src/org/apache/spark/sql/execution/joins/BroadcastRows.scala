// Scala because: the tables of Spark's broadcast joins are private to this package of Spark's.
package org.apache.spark.sql.execution.joins

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.SparkPlan

/** The rows of a table that Spark broadcasts for a hash join. */
object BroadcastRows {

  /**
   * The rows in an order that is the same for the same table; none if they have more bytes than
   * `bytesMax`. Rows with a null among their keys are not in it: they match nothing.
   *
   * @param side the child of the join that is broadcast
   */
  def of(side: SparkPlan, bytesMax: Long): Option[Seq[InternalRow]] = {
    val table = side.executeBroadcast[HashedRelation]().value.asReadOnlyCopy()
    within(table.keys(), key => Option(table.get(key)).getOrElse(Iterator.empty), bytesMax)
  }

  /**
   * The rows of all keys; none as soon as they have more bytes. Keys may come again, as often as they
   * have rows, and keys and rows in an object that is filled again and again.
   */
  private[sql] def within(
      keys: Iterator[InternalRow],
      rowsOf: InternalRow => Iterator[InternalRow],
      bytesMax: Long): Option[Seq[InternalRow]] = {
    val known = mutable.HashSet.empty[InternalRow]
    val rows = mutable.ArrayBuffer.empty[InternalRow]
    var bytes = 0L
    while (keys.hasNext && bytes <= bytesMax) {
      val key = keys.next()
      if (!known(key)) {
        val kept = key.copy()
        known += kept
        val ofKey = rowsOf(kept)
        while (ofKey.hasNext && bytes <= bytesMax) {
          val row = ofKey.next().copy()
          rows += row
          bytes += sizeOf(row)
        }
      }
    }
    Option.when(bytes <= bytesMax)(rows.toSeq)
  }

  private def sizeOf(row: InternalRow): Long = row match {
    case unsafe: UnsafeRow => unsafe.getSizeInBytes.toLong
    case other => other.numFields.toLong * java.lang.Long.BYTES
  }
}
