// Scala because: the stream thread of a query with terms asks over this route before every batch.
package penstock.client

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import penstock.settings.Terms
import penstock.wire._

/** The route by which a query with a deadline or a policy asks for its next batch. */
final class AdmissionRoutes private[client] (gateway: Gateway) {

  def admitBatch(question: BatchQuestion, terms: Terms): BatchAdmission =
    answerOf(gateway.postJson("/admission/batch", bodyOf(question, terms)))

  private def bodyOf(question: BatchQuestion, terms: Terms): ObjectNode = {
    val body = Json.createObjectNode()
    body.put("query", question.query).put("application", question.application)
    body.put("cores", question.cores).put("is_first", question.isFirst).put("must_cut", question.mustCut)
    body.put("schedule", question.schedule).put("wait_ms", question.waitMs)
    question.name.foreach(name => body.put("name", name))
    question.instance.foreach(instance => body.put("instance", instance))
    val inputs = body.putArray("inputs")
    question.inputs.zipWithIndex.foreach { case (input, source) =>
      fillInput(inputs.addObject().put("source", source), input)
    }
    fillTerms(body.putObject("terms"), terms)
    val reports = body.putArray("reports")
    question.reports.foreach(report => fillReport(reports.addObject(), report))
    question.pipeline.foreach(PlanJson.fillPipeline(body.putObject("pipeline"), _))
    // Left out where there is nothing new, which is what most questions have to say of the plan.
    if (question.planNotes.nonEmpty) {
      val notes = body.putArray("plan_notes")
      question.planNotes.foreach(note => fillNote(notes.addObject(), note))
    }
    body
  }

  private def fillInput(node: ObjectNode, input: BatchInput): Unit = input match {
    case log: LogInput =>
      node.put("stream", log.stream).put("after", log.after).put("number", log.number)
      log.rowsMax.foreach(rows => node.put("rows_max", rows))
      log.bytesMax.foreach(bytes => node.put("bytes_max", bytes))
      log.until.foreach(position => node.put("until", position))
      AdmissionRoutes.fillInline(node, log.inline)
    case offer: Offer =>
      val offered = node.putObject("offer").put("cuts_by", offer.cutsBy)
      offer.rows.foreach(rows => offered.put("rows", rows))
      offer.bytes.foreach(bytes => offered.put("bytes", bytes))
      offer.files.foreach(files => offered.put("files", files))
      offer.ageMs.foreach(ms => offered.put("age_ms", ms))
  }

  private def fillTerms(node: ObjectNode, terms: Terms): Unit = {
    node.put("policy", terms.policy).put("importance", terms.importance).put("from", terms.countedFrom)
    terms.deadlineMs.foreach(ms => node.put("deadline_ms", ms))
    terms.intervalMs.foreach(ms => node.put("interval_ms", ms))
    terms.slideMs.foreach(ms => node.put("slide_ms", ms))
  }

  private def fillNote(node: ObjectNode, note: PlanNote): Unit = {
    node.put("rule", note.rule).put("operator", note.operator)
    node.put("text", note.text).put("since_batch", note.sinceBatch)
    ()
  }

  private def fillReport(node: ObjectNode, report: BatchReport): Unit = {
    node.put("cut", report.cut).put("rows", report.rows).put("has_data", report.hasData)
    node.put("queued_ms", report.queuedMs).put("planning_ms", report.planningMs)
    node.put("core_ms", report.coreMs).put("longest_task_ms", report.longestTaskMs)
    node.put("tasks", report.tasks)
    report.bytes.foreach(bytes => node.put("bytes", bytes))
    report.visibleMs.foreach(ms => node.put("visible_ms", ms))
    report.plan.foreach(PlanJson.fillReport(node.putObject("plan"), _))
  }

  private def answerOf(answer: JsonNode): BatchAdmission = {
    val shares = answer.path("inputs").elements().asScala.map { input =>
      input.path("source").asInt() -> shareOf(input)
    }
    BatchAdmission(
      answer.path("server").asText(),
      Option.when(answer.path("is_cut").asBoolean())(answer.path("cut").asLong()),
      shares.toMap,
      number(answer, "left_ms"),
      answer.path("weight").asDouble(1.0),
      number(answer, "predicted_ms"),
      answer.path("reason").asText(),
      answer.path("policy").asText(),
      number(answer, "deadline_ms"),
      PlanJson.planOf(answer))
  }

  private def shareOf(input: JsonNode): Share = {
    val take = input.path("take")
    if (input.hasNonNull("end")) Share.LogEnd(AdmissionRoutes.admissionOf(input))
    else if (take.isNumber) Share.UpTo(take.asLong())
    else if (take.asText() == "all") Share.All
    else Share.Nothing
  }

  private def number(answer: JsonNode, field: String): Option[Double] =
    Option(answer.get(field)).filter(_.isNumber).map(_.asDouble())
}

private[client] object AdmissionRoutes {

  def fillInline(node: ObjectNode, wish: InlineRequest): Unit = if (wish.bytesMax > 0) {
    node.put("inline_bytes", wish.bytesMax).put("columns", wish.columns)
    ()
  }

  def admissionOf(answer: JsonNode): Admission = {
    val rows = Option(answer.get("pages")).filterNot(_.isNull).map { pages =>
      InlineRows(pages.elements().asScala.map { page =>
        page.path("substream").asInt() -> page.path("rows").binaryValue()
      }.toMap)
    }
    Admission(
      answer.path("end").asLong(),
      answer.path("latest").asLong(),
      answer.path("substreams").asInt(),
      rows)
  }
}
