// Scala because: it reads Spark's binary rows, for every row that a task writes to a state store.
package penstock.eviction

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/**
 * Where the event time stands in the rows of a store: Spark's bytes are one for the version of the
 * encoding and then a binary row.
 *
 * @param inValue whether it is in the value of a row and not in its key
 * @param fields how many the binary row has
 * @param ordinal which of them has the time
 * @param windowFields how many fields the time has if it is a window, whose end counts; 0: it is none
 */
final case class TimeColumn(inValue: Boolean, fields: Int, ordinal: Int, windowFields: Int)

/** Reads the time of rows; not for two threads at once. */
final class TimeReader(column: TimeColumn) {
  import TimeReader._

  private val row = new UnsafeRow(column.fields)

  /**
   * The time in microseconds; NoTime for null, which is never expired.
   *
   * @param bytes the key or the value of a row, as the column says
   */
  def of(bytes: Array[Byte]): Long = {
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + VersionBytes, bytes.length - VersionBytes)
    if (row.isNullAt(column.ordinal)) NoTime
    else if (column.windowFields == 0) row.getLong(column.ordinal)
    else {
      val window = row.getStruct(column.ordinal, column.windowFields)
      if (window.isNullAt(WindowEnd)) NoTime else window.getLong(WindowEnd)
    }
  }
}

object TimeReader {

  /** Later than any watermark, so that a row without a time is kept. */
  val NoTime: Long = LeastTime.NoRowUs

  private val VersionBytes = 1

  /** The field of a window that Spark compares with the watermark. */
  private val WindowEnd = 1
}
