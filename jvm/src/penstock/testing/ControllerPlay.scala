// Scala because: it plays vectors to the controller of prefetching, inside the JVM that runs it.
package penstock.testing

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import penstock.prefetch.{Candidate, Controller, ControlTerms, OperatorBatch, Prefetches}
import penstock.wire.Json

/** Tells the controller of the batches of a vector, which its Python twin is held to as well. */
object ControllerPlay {

  /** What is active and discarded after each batch, and why where that has changed. */
  def answer(vector: String): String = {
    val asked = Json.readTree(vector)
    val answers = Json.createArrayNode()
    val candidates = named(asked.path("candidates"))
    asked.path("batches").elements().asScala.foldLeft(Controller(candidates, termsOf(asked.path("terms")))) {
      (controller, batch) =>
        val (next, switch) = controller.after(batchOf(batch))
        val answer = answers.addObject()
        val active = answer.putArray("active")
        next.active.foreach(each => active.add(each.name))
        val discarded = answer.putArray("discarded")
        Candidate.all.filter(next.discarded).foreach(each => discarded.add(each.name))
        switch.fold(answer.putNull("reason"))(each => answer.put("reason", each.reason))
        next
    }
    answers.toString
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
