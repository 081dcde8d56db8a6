// Scala because: Spark makes the sources of its older interface by a class of its own, in its JVM.
package org.apache.spark.sql.penstock.admission

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.admission.QueryAdmission
import penstock.settings.StatedTerms

/**
 * A data source whose stream is cut by admission. Never equal to the plain one: Spark would take a
 * plan with the one for the plan with the other, and leave it as it was.
 */
private[admission] final class AdmittedDataSource(plain: DataSource)
    extends DataSource(
      plain.sparkSession,
      plain.className,
      plain.paths,
      plain.userSpecifiedSchema,
      plain.partitionColumns,
      plain.bucketSpec,
      plain.options,
      plain.catalogTable,
      plain.userSpecifiedStreamingSourceName) {

  override def createSource(metadataPath: String): Source = {
    val stated = new CaseInsensitiveStringMap(plain.options.asJava)
    QueryAdmission.starting(StatedTerms.of(stated))
    AdmittedOlderSource.around(super.createSource(metadataPath), stated)
  }

  override def canEqual(other: Any): Boolean = other.isInstanceOf[AdmittedDataSource]

  override def equals(other: Any): Boolean = other match {
    case admitted: AdmittedDataSource => super.equals(admitted)
    case _ => false
  }

  override def hashCode: Int = 31 * super.hashCode
}
