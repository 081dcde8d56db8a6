// Scala because: it plays vectors to the wire form of plans inside the JVM that sends and reads them.
package penstock.testing

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import penstock.devices.{RunPlans, WorkerSums}
import penstock.observe.ScanTasks
import penstock.wire._

/** Reads and writes plans of the vectors that the Python twin is held to as well. */
object PlanPlay {

  /** The pipeline of a question, read here and written as a question has it. */
  def pipeline(vector: String): String = {
    val node = Json.readTree(vector)
    val pipeline = PlannablePipeline(
      each(node, "operations").map(o => PlannableOperation(text(o, "kind"), text(o, "text"))),
      each(node, "machines").map(machine => machineOf(machine) -> machine.path("count").asInt()).toMap,
      each(node, "paths").map(_.asText()),
      text(node, "devices"),
      text(node, "policy"),
      node.path("source").asInt(),
      node.path("windows").asInt(),
      node.path("gpu_workers").asLong())
    PlanJson.fillPipeline(Json.createObjectNode(), pipeline).toString
  }

  /** The plan of an answer as it is read, with everything that it has. */
  def plan(answer: String): String = PlanJson.planOf(Json.readTree(answer)).fold("") { plan =>
    val node = Json.createObjectNode().put("path", plan.path).put("reason", plan.reason)
    node.put("policy", plan.policy).put("is_probe", plan.isProbe).put("bytes", plan.bytes)
    node.put("must_not_fall_back", plan.mustNotFallBack)
    plan.expectedMs.foreach(ms => node.put("expected_ms", ms))
    val operations = node.putArray("operations")
    plan.operations.foreach { operation =>
      val part = operations.addObject().put("kind", operation.kind).put("device", operation.device)
      part.put("reason", operation.reason)
      operation.expectedMs.foreach(ms => part.put("expected_ms", ms))
    }
    node.toString
  }

  /** The report of a batch whose tasks had these answers of their workers. */
  def report(vector: String): String = {
    val node = Json.readTree(vector)
    val stage = node.path("stage")
    val sums = each(node, "tasks").zipWithIndex.map { case (answers, task) =>
      answers.elements().asScala
        .map(WorkerSums.of(_, s"executor $task"))
        .foldLeft(WorkerSums.Empty)(_.withinTask(_))
    }.foldLeft(WorkerSums.Empty)(_.plus(_))
    val plan = BatchPlan(
      text(node, "path"), "", Nil, None, "ours", isProbe = false, mustNotFallBack = false,
      bytes = node.path("bytes").asLong())
    val plans = new RunPlans
    plans.runs(7, text(node, "path"), plan, () => sums)
    plans.ruleTook(7, node.path("rule_ms").asDouble())
    val tasks = ScanTasks(
      stage.path("tasks").asInt(), stage.path("run_ms").asLong(), stage.path("rows").asLong())
    plans.report(7, tasks).fold("") { made =>
      PlanJson.fillReport(Json.createObjectNode(), made).toString
    }
  }

  private def machineOf(machine: JsonNode): MachineKind = MachineKind(
    text(machine, "cpu"),
    machine.path("cores").asInt(),
    Option.when(machine.hasNonNull("gpu")) {
      GpuKind(
        text(machine, "gpu"),
        text(machine, "cuda"),
        machine.path("gpus").asInt(),
        machine.path("gpu_bytes").asLong())
    })

  private def each(node: JsonNode, field: String): Seq[JsonNode] =
    node.path(field).elements().asScala.toSeq

  private def text(node: JsonNode, field: String): String = node.path(field).asText()
}
