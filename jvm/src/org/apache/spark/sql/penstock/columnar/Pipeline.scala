// Scala because: the planner makes it from Spark's plan, and tasks of Spark send it to workers.
package org.apache.spark.sql.penstock.columnar

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.types.StructType

import penstock.wire.{Json, PlannableOperation}

/**
 * A pipeline that a Python worker can run in place of a part of a plan.
 *
 * @param stepsJson what it does, as `penstock.devices.pipeline` reads it
 * @param steps the kinds of its steps
 * @param operations those of its steps that can be planned: all but the notes of event times
 * @param places the columns of the scan that it needs
 * @param input their types
 * @param tables the columns that are sent of the static table of each join, from the bottom up
 */
private[columnar] final case class Pipeline(
    stepsJson: String,
    steps: Seq[String],
    operations: Seq[PlannableOperation],
    places: Seq[Int],
    input: StructType,
    tables: Seq[Seq[Int]] = Nil) {

  /** Whether its results are of windows and no more of panes, which are copied to windows. */
  def isExpanded: Boolean = steps.contains(Pipeline.Expand)

  /**
   * The pipeline on devices: one for all operations, or one for each. Left is why these do not fit:
   * they were planned for another plan.
   */
  def on(
      devices: Seq[String],
      mustNotFallBack: Boolean,
      gpuWorkers: Long): Either[String, PlacedPipeline] = {
    val ofOperations =
      if (devices.distinct.size == 1) Seq.fill(operations.size)(devices.head) else devices
    Either.cond(
      ofOperations.size == operations.size,
      PlacedPipeline(this, ofOperations, mustNotFallBack, gpuWorkers),
      s"devices were planned for ${devices.size} operations, and it has ${operations.size}")
  }
}

private[columnar] object Pipeline {

  /** The step that notes event times: no operation, and done where the operation after it is. */
  val EventTime = "event_time"

  /** The step that makes a copy of a row for each of its windows. */
  val Expand = "expand"
}

/** A pipeline with the device of each of its operations. */
private[columnar] final case class PlacedPipeline(
    pipeline: Pipeline,
    devices: Seq[String],
    mustNotFallBack: Boolean,
    gpuWorkers: Long) {

  /** Its devices in words. */
  def place: String = devices.distinct.mkString(", ")

  def words: String = s"$place: ${pipeline.steps.mkString(", ")}"

  /** Its description, as `penstock.devices.pipeline` reads it. */
  def json: String = {
    val description = Json.createObjectNode().put("device", devices.headOption.getOrElse("cpu"))
    if (devices.distinct.size > 1) {
      val ofSteps = description.putArray("devices")
      devicesOfSteps.foreach(device => ofSteps.add(device))
    }
    description.put("must_not_fall_back", mustNotFallBack).put("gpu_workers", gpuWorkers)
    description.set[ObjectNode]("steps", Json.readTree(pipeline.stepsJson)).toString
  }

  private def devicesOfSteps: Seq[String] = {
    val before = pipeline.steps.scanLeft(0) { (operations, step) =>
      if (step == Pipeline.EventTime) operations else operations + 1
    }
    before.init.map(operations => devices(math.min(operations, devices.size - 1)))
  }
}
