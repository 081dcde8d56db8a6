// Scala because: a rule of Spark's analyser, which sees the plan of every query that is started.
package org.apache.spark.sql.penstock.admission

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.{StreamingRelationV2, WriteToStream}
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.{LogSink, WindowSlide}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import penstock.settings.{Connection, StatedTerms, Terms}

/**
 * Puts every source of a streaming query with terms under admission: a batch is cut for all sources
 * together, so that one without a deadline of its own is wrapped too. Looks at a query when it is
 * started, for the terms may be those of the session at that time, and refuses terms that cannot be
 * kept before anything runs.
 */
object AdmissionRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case write: WriteToStream if hasTerms(write.inputQuery) =>
      // A plan that is analysed already would be passed over by the transformations of a rule.
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        write.copy(inputQuery = write.inputQuery.transformUp {
          case relation: StreamingRelationV2 =>
            relation.copy(
              table = wrapped(relation.table),
              v1Relation = relation.v1Relation.map {
                case older: StreamingRelation => wrapped(older)
                case other => other
              })
          case relation: StreamingRelation => wrapped(relation)
        })
      }
    case _ => plan
  }

  private def wrapped(table: Table): Table = table match {
    // Streams of the log ask by themselves.
    case _: LogSink | _: AdmittedTable => table
    case readable: SupportsRead => AdmittedTable(readable)
    case other => other
  }

  private def wrapped(relation: StreamingRelation): StreamingRelation = relation.dataSource match {
    case _: AdmittedDataSource => relation
    case plain => relation.copy(dataSource = new AdmittedDataSource(plain))
  }

  /** Whether the query or the session states terms; throws BadCall if they cannot be kept. */
  private def hasTerms(query: LogicalPlan): Boolean = {
    val options = query.collect {
      case relation: StreamingRelationV2 => relation.extraOptions
      case relation: StreamingRelation => new CaseInsensitiveStringMap(relation.dataSource.options.asJava)
    }
    val session = StatedTerms.read(key => Option(SQLConf.get.getConfString(key, null)))
    val terms = Terms.merge(options.map(StatedTerms.of(_)), session, WindowSlide.msOf(query))
    terms.foreach(_ => options.foreach(Connection.forTerms(_)))
    terms.isDefined
  }
}
