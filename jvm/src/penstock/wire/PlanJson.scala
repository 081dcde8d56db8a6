// Scala because: questions and answers of the stream thread are made and read with Spark's Jackson.
package penstock.wire

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/** Plans of batches as the server reads and writes them: `penstock.model.device_plans`. */
object PlanJson {

  def fillPipeline(node: ObjectNode, pipeline: PlannablePipeline): ObjectNode = {
    val operations = node.putArray("operations")
    pipeline.operations.foreach { operation =>
      operations.addObject().put("kind", operation.kind).put("text", operation.text)
    }
    val machines = node.putArray("machines")
    pipeline.machines.foreach { case (machine, count) =>
      fillMachine(machines.addObject(), machine).put("count", count)
    }
    val paths = node.putArray("paths")
    pipeline.paths.foreach(path => paths.add(path))
    node.put("devices", pipeline.devices).put("policy", pipeline.policy)
    node.put("source", pipeline.source).put("windows", pipeline.windows)
    node.put("gpu_workers", pipeline.gpuWorkers)
  }

  def fillReport(node: ObjectNode, report: PlanReport): ObjectNode = {
    node.put("path", report.path).put("stage_ms", report.stageMs).put("tasks", report.tasks)
    node.put("bytes", report.bytes).put("rows", report.rows).put("worker_ms", report.workerMs)
    node.put("to_gpu_ms", report.toGpu.ms).put("to_gpu_bytes", report.toGpu.bytes)
    node.put("to_cpu_ms", report.toCpu.ms).put("to_cpu_bytes", report.toCpu.bytes)
    val operations = node.putArray("operations")
    report.operations.foreach { operation =>
      val each = operations.addObject().put("first", operation.first).put("device", operation.device)
      each.put("ms", operation.ms).put("bytes", operation.bytes)
      each.put("rows", operation.rows).put("tasks", operation.tasks)
    }
    val fallbacks = node.putArray("fallbacks")
    report.fallbacks.foreach { fallback =>
      val each = fallbacks.addObject().put("cause", fallback.cause)
      each.put("tasks", fallback.tasks).put("text", fallback.text)
    }
    node.put("splits", report.splits).put("started_workers", report.startedWorkers)
    node.put("rule_ms", report.ruleMs)
  }

  /** The plan in an answer; None where it has none. */
  def planOf(answer: JsonNode): Option[BatchPlan] = objectOf(answer, "plan").map { plan =>
    BatchPlan(
      plan.path("path").asText(),
      plan.path("reason").asText(),
      plan.path("operations").elements().asScala.map(operationOf).toSeq,
      numberOf(plan, "expected_ms"),
      plan.path("policy").asText("ours"),
      plan.path("is_probe").asBoolean(),
      plan.path("must_not_fall_back").asBoolean(),
      plan.path("bytes").asLong())
  }

  /** The GPU that a Python worker tells of; None where it has none. */
  def gpuOf(report: JsonNode): Option[GpuKind] = objectOf(report, "gpu").map { gpu =>
    GpuKind(
      gpu.path("name").asText(),
      gpu.path("cuda").asText(),
      gpu.path("count").asInt(),
      gpu.path("bytes").asLong())
  }

  private def fillMachine(node: ObjectNode, machine: MachineKind): ObjectNode = {
    node.put("cpu", machine.cpu).put("cores", machine.cores)
    machine.gpu.foreach { gpu =>
      node.put("gpu", gpu.name).put("cuda", gpu.cuda)
      node.put("gpus", gpu.count).put("gpu_bytes", gpu.bytes)
    }
    node
  }

  private def operationOf(operation: JsonNode): PlannedOperation = PlannedOperation(
    operation.path("kind").asText(),
    operation.path("device").asText(),
    operation.path("reason").asText(),
    numberOf(operation, "expected_ms"))

  private def objectOf(node: JsonNode, field: String): Option[JsonNode] =
    Option(node.get(field)).filter(_.isObject)

  private def numberOf(node: JsonNode, field: String): Option[Double] =
    Option(node.get(field)).filter(_.isNumber).map(_.asDouble())
}
