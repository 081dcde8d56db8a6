// Scala because: Spark finds format("penstock") as a Java service; META-INF/services has this
// full name.
package penstock

import java.util

import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.penstock.ArrowBridge
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.commit.jvm.JvmResources
import penstock.plugin.PenstockTable
import penstock.settings.{Connection, Options}

/** `format("penstock")`. A source takes its schema from the stream, a sink gives its own. */
final class PenstockProvider extends TableProvider with DataSourceRegister {
  override def shortName(): String = "penstock"

  override def supportsExternalMetadata(): Boolean = true

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = {
    val gateway = JvmResources.here.gateways.to(Connection.of(options))
    ArrowBridge.sparkSchema(gateway.streams.describe(Options.stream(options)).schema)
  }

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]): Table = {
    val options = new CaseInsensitiveStringMap(properties)
    new PenstockTable(Options.streams(options), schema, Connection.of(options))
  }
}
