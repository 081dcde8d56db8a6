// Scala because: it implements the interfaces of a Spark table that can be read and written.
package penstock.plugin

import java.util

import org.apache.spark.sql.connector.catalog.{SupportsRead, SupportsWrite, TableCapability}
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.penstock.{ArrowBridge, LogSink}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.BadCall
import penstock.commit.jvm.JvmResources
import penstock.settings.{Connection, Options, Streams}
import penstock.sink.LogWriteBuilder
import penstock.source.LogScan

/**
 * One stream of the log, as Spark sees it: a table to read and write, in batch or streaming. One
 * with several streams can only be written.
 */
final class PenstockTable(streams: Streams, declared: StructType, connection: Connection)
    extends SupportsRead
    with SupportsWrite
    with LogSink {

  override def name(): String = s"penstock:$streams"

  override def schema(): StructType = declared

  override def capabilities(): util.Set[TableCapability] =
    util.EnumSet.of(BATCH_READ, MICRO_BATCH_READ, BATCH_WRITE, STREAMING_WRITE, ACCEPT_ANY_SCHEMA)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => {
    val stream = Options.stream(options)
    val info = JvmResources.here.gateways.to(connection).streams.describe(stream)
    val actual = ArrowBridge.sparkSchema(info.schema)
    // Columns may have been added at the end since the query's plan was made.
    if (actual.take(declared.length) != declared.toSeq) {
      throw new BadCall(
        "schema_differs",
        s"stream '$stream' has the columns ${actual.toDDL}, not ${declared.toDDL}; leave out " +
          ".schema(...): the source takes its schema from the stream")
    }
    new LogScan(connection, info.first(declared.length), Options.read(options))
  }

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new LogWriteBuilder(connection, streams, info)
}
