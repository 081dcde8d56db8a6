// Scala because: it plays vectors to the controller of prefetching, inside the JVM that runs it.
package penstock.testing

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import penstock.prefetch.{Candidate, Controller, ControlTerms, OperatorBatch, Prefetches, Switch}
import penstock.wire.Json

/** Tells the controller of the batches of a vector, which its Python twin is held to as well. */
object ControllerPlay {

  /**
   * What is active and discarded after each batch, and why where that has changed; and once more for
   * a batch behind which the plan is made again.
   */
  def answer(vector: String): String = {
    val asked = Json.readTree(vector)
    val answers = Json.createArrayNode()
    def answered(decided: (Controller, Option[Switch])): Controller = {
      fill(answers.addObject(), decided._1, decided._2)
      decided._1
    }
    val first = Controller(named(asked.path("candidates")), termsOf(asked.path("terms")))
    asked.path("batches").elements().asScala.map(batchOf).foldLeft(first) { (controller, batch) =>
      def planned(field: String) =
        Option(asked.path(field).get(batch.batch.toString)).map(named)
      val candidates = planned("offered").getOrElse(controller.candidates)
      val next = answered(controller.after(batch, candidates))
      planned("planned_again").fold(next)(others => answered(next.offered(others, batch.batch)))
    }
    answers.toString
  }

  private def fill(answer: ObjectNode, controller: Controller, switch: Option[Switch]): Unit = {
    val active = answer.putArray("active")
    controller.active.foreach(each => active.add(each.name))
    val discarded = answer.putArray("discarded")
    Candidate.all.filter(controller.discarded).foreach(each => discarded.add(each.name))
    switch.fold(answer.putNull("reason"))(each => answer.put("reason", each.reason))
    ()
  }

  private def named(names: JsonNode): Seq[Candidate] =
    names.elements().asScala.flatMap(name => Candidate.named(name.asText())).toSeq

  private def termsOf(terms: JsonNode): ControlTerms = ControlTerms(
    terms.path("unused_percent_max").asLong(),
    terms.path("margin_us").asLong(),
    terms.path("memory_us").asLong())

  private def batchOf(batch: JsonNode): OperatorBatch = OperatorBatch(
    batch.path("batch").asLong(),
    batch.path("rows").asLong(),
    batch.path("misses").asLong(),
    byCandidate(batch.path("prefetches")) { each =>
      Prefetches(each.path("used").asLong(), each.path("unused").asLong())
    },
    byCandidate(batch.path("slack_us"))(_.asLong()),
    batch.path("access_us").properties().asScala.map(each => each.getKey.toLong -> each.getValue.asLong()).toMap,
    batch.path("has_failed_attempts").asBoolean())

  private def byCandidate[A](node: JsonNode)(read: JsonNode => A): Map[Candidate, A] =
    Candidate.all.flatMap(each => Option(node.get(each.name)).map(value => each -> read(value))).toMap
}
