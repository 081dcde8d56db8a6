// Scala because: it plays vectors to the order of the driver's pool, inside the JVM that runs it.
package penstock.testing

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.DeadlinePool

import penstock.BadCall
import penstock.schedule.{AskedOrder, TaskOrder, TaskSetFacts}
import penstock.wire.Json

/** Orders task sets of the vectors that the Python twin is held to as well, and adds pools. */
object SchedulePlay {
  def answer(vector: String): String = {
    val sets = Json.readTree(vector).path("task_sets").elements().asScala.map(factsOf).toSeq
    val answer = Json.createObjectNode()
    val order = answer.putObject("order")
    Seq("edf", "rdas", "fifo", "fair").foreach { policy =>
      val keys = order.putArray(policy)
      TaskOrder.of(policy)(sets).foreach(set => keys.add(set.key))
    }
    val weights = answer.putObject("weights")
    TaskOrder.weights(sets).foreach { case (query, weight) => weights.put(query, weight) }
    answer.toString
  }

  /** The sentence with which settings are refused; empty where they are not. */
  def refusal(settings: String): String =
    try {
      AskedOrder.in(key => Option(Json.readTree(settings).get(key)).map(_.asText()))
      ""
    } catch { case refused: BadCall => refused.getMessage }

  /** A pool of another order beside the application's own. */
  def addPool(context: SparkContext, policy: String, name: String): Unit =
    DeadlinePool.addTo(context, TaskOrder.of(policy), name)

  /** A pool whose order fails whenever it is asked. */
  def addFailingPool(context: SparkContext, name: String): Unit =
    DeadlinePool.addTo(context, _ => throw new IllegalStateException("planted"), name)

  private def factsOf(set: JsonNode): TaskSetFacts = TaskSetFacts(
    set.path("key").asText(),
    set.path("job").asInt(),
    set.path("stage").asInt(),
    set.path("seen_at_ms").asLong(),
    set.path("running").asInt(),
    Option(set.get("query")).filterNot(_.isNull).map(_.asText()),
    Option(set.get("deadline_at_ms")).filterNot(_.isNull).map(_.asLong()),
    set.path("weight").asDouble())
}
