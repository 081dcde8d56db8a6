// Scala because: it implements the interfaces of a Spark table around another one.
package org.apache.spark.sql.penstock.admission

import java.util

import org.apache.spark.sql.connector.catalog.{Column, MetadataColumn, SupportsMetadataColumns, SupportsRead, TableCapability}
import org.apache.spark.sql.connector.catalog.constraints.Constraint
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.{Batch, Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.connector.read.streaming.{ContinuousStream, MicroBatchStream}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.admission.QueryAdmission
import penstock.settings.StatedTerms

/**
 * A table whose streams are cut by admission, and which is the same in all else. Two around one
 * table are equal, as a query that reads a relation twice has one source for both.
 */
private[admission] final case class AdmittedTable(delegate: SupportsRead)
    extends SupportsRead
    with SupportsMetadataColumns {

  override def name(): String = delegate.name()

  override def id(): String = delegate.id()

  override def columns(): Array[Column] = delegate.columns()

  override def partitioning(): Array[Transform] = delegate.partitioning()

  override def properties(): util.Map[String, String] = delegate.properties()

  override def capabilities(): util.Set[TableCapability] = delegate.capabilities()

  override def constraints(): Array[Constraint] = delegate.constraints()

  override def version(): String = delegate.version()

  override def metadataColumns(): Array[MetadataColumn] = delegate match {
    case having: SupportsMetadataColumns => having.metadataColumns()
    case _ => Array.empty
  }

  override def canRenameConflictingMetadataColumns(): Boolean = delegate match {
    case having: SupportsMetadataColumns => having.canRenameConflictingMetadataColumns()
    case _ => super.canRenameConflictingMetadataColumns()
  }

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new AdmittedScanBuilder(delegate.newScanBuilder(options), options)

  override def toString: String = delegate.toString
}

private final class AdmittedScanBuilder(delegate: ScanBuilder, options: CaseInsensitiveStringMap)
    extends ScanBuilder
    with SupportsPushDownRequiredColumns {

  override def pruneColumns(required: StructType): Unit = delegate match {
    case pruning: SupportsPushDownRequiredColumns => pruning.pruneColumns(required)
    case _ =>
  }

  override def build(): Scan = new AdmittedScan(delegate.build(), options)
}

private final class AdmittedScan(delegate: Scan, options: CaseInsensitiveStringMap) extends Scan {
  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    QueryAdmission.starting(StatedTerms.of(options))
    AdmittedStream.around(delegate.toMicroBatchStream(checkpointLocation), options)
  }

  override def toContinuousStream(checkpointLocation: String): ContinuousStream = {
    QueryAdmission.startingContinuous(StatedTerms.of(options))
    delegate.toContinuousStream(checkpointLocation)
  }

  override def readSchema(): StructType = delegate.readSchema()

  override def description(): String = delegate.description()

  override def toBatch: Batch = delegate.toBatch

  override def supportedCustomMetrics(): Array[CustomMetric] = delegate.supportedCustomMetrics()

  override def reportDriverMetrics(): Array[CustomTaskMetric] = delegate.reportDriverMetrics()

  override def columnarSupportMode(): Scan.ColumnarSupportMode = delegate.columnarSupportMode()
}
