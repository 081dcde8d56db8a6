// Scala because: Spark brings what tasks add to it to the driver, as objects of its own type.
package org.apache.spark.sql.penstock.columnar

import org.apache.spark.util.AccumulatorV2

import penstock.devices.WorkerSums

/** What the Python workers of one batch have measured; a task adds the reports of its worker. */
private[columnar] final class WorkerTotals extends AccumulatorV2[WorkerSums, WorkerSums] {
  private var sums = WorkerSums.Empty

  override def isZero: Boolean = sums == WorkerSums.Empty

  override def copy(): WorkerTotals = {
    val other = new WorkerTotals
    other.sums = sums
    other
  }

  override def reset(): Unit = sums = WorkerSums.Empty

  override def add(report: WorkerSums): Unit = sums = sums.withinTask(report)

  override def merge(other: AccumulatorV2[WorkerSums, WorkerSums]): Unit =
    sums = sums.plus(other.value)

  override def value: WorkerSums = sums
}
