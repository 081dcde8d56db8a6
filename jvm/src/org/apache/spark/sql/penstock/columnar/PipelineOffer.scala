// Scala because: it is made from the physical plan of a batch, for the question about the next one.
package org.apache.spark.sql.penstock.columnar

import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec
import org.apache.spark.sql.penstock.LogSource
import org.apache.spark.sql.penstock.windows.PaneAggregate

import penstock.devices.OfferedPipeline
import penstock.settings.Keys

/** What the next batches of a query can have planned of an aggregate per pane. */
private[columnar] object PipelineOffer {

  /** Left is why nothing of it can be planned. Tables that do not change do not count. */
  def of(
      hash: HashAggregateExec,
      known: PaneAggregate,
      translated: => Either[String, Pipeline],
      setting: String): Either[String, OfferedPipeline] = streamBelow(hash.child).map { stream =>
    val taken = translated.filterOrElse(
      setting != Keys.AutoDevices || !_.steps.contains(ParseTranslation.Parse),
      s"texts are parsed by workers only where ${Keys.Devices} asks for them")
    val refusal =
      if (setting == Keys.PanesDevices) Some(s"${Keys.Devices} is $setting") else taken.left.toOption
    OfferedPipeline(
      known.operator,
      stream,
      taken.fold(_ => Nil, _.operations),
      known.windows.count,
      leftToSpark = refusal)
  }

  /**
   * The stream whose rows the aggregate gets in the tasks that read them. These are the ones that are
   * measured: what the aggregate takes in a later stage they do not tell.
   */
  private def streamBelow(plan: SparkPlan): Either[String, AnyRef] = plan match {
    case scan: MicroBatchScanExec =>
      scan.stream match {
        case log: LogSource => Right(log)
        case _ => Left("it does not read a stream of the log")
      }
    case join: BroadcastHashJoinExec => streamBelow(StaticTables.sidesOf(join).stream)
    case filter: FilterExec => streamBelow(filter.child)
    case project: ProjectExec => streamBelow(project.child)
    case watermark: EventTimeWatermarkExec => streamBelow(watermark.child)
    case map: ColumnarMapExec => streamBelow(map.child)
    case other => Left(s"${other.nodeName} stands between its aggregate and the log")
  }
}
