// Scala because: it hashes the key of every row that a task writes.
package penstock.sink

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

import penstock.BadCall

/**
 * Which substream a row goes to: the CRC-32 of its key's canonical bytes, modulo the number of
 * substreams. Twin of `penstock.model.routing`; both run tests/vectors/routing.json.
 */
final class Routing(schema: StructType, key: Seq[String], substreams: Int) {
  private val columns: Array[(Int, DataType)] = key.map { name =>
    val column = schema.fieldNames.indexOf(name)
    if (column < 0) {
      throw new BadCall(
        "rows_do_not_fit",
        s"the key column '$name' is not among the query's columns ${schema.fieldNames.mkString(", ")}")
    }
    (column, schema(column).dataType)
  }.toArray

  private val crc = new CRC32()
  private val eight = ByteBuffer.allocate(8)
  private val four = ByteBuffer.allocate(4)

  def substreamOf(row: InternalRow): Int = (hashOf(row) % substreams).toInt

  def hashOf(row: InternalRow): Long = {
    crc.reset()
    columns.foreach { case (column, dataType) =>
      if (row.isNullAt(column)) crc.update(0)
      else {
        crc.update(1)
        update(row, column, dataType)
      }
    }
    crc.getValue
  }

  private def update(row: InternalRow, column: Int, dataType: DataType): Unit = dataType match {
    case BooleanType => crc.update(if (row.getBoolean(column)) 1 else 0)
    case ByteType => long(row.getByte(column).toLong)
    case ShortType => long(row.getShort(column).toLong)
    case IntegerType | DateType => long(row.getInt(column).toLong)
    case LongType | TimestampType | TimestampNTZType => long(row.getLong(column))
    case FloatType => double(row.getFloat(column).toDouble)
    case DoubleType => double(row.getDouble(column))
    case _: StringType => bytes(row.getUTF8String(column).getBytes)
    case BinaryType => bytes(row.getBinary(column))
    case d: DecimalType =>
      val value = row.getDecimal(column, d.precision, d.scale).toJavaBigDecimal.setScale(d.scale)
      bytes(value.toPlainString.getBytes(UTF_8))
    case other =>
      throw new BadCall(
        "bad_key",
        s"a column of type ${other.simpleString} cannot be a key; use a plain column")
  }

  private def long(value: Long): Unit = crc.update(eight.putLong(0, value).array())

  private def double(value: Double): Unit =
    long(java.lang.Double.doubleToLongBits(if (value == 0.0) 0.0 else value))

  private def bytes(value: Array[Byte]): Unit = {
    crc.update(four.putInt(0, value.length).array())
    crc.update(value)
  }
}
