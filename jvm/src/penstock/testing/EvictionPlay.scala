// Scala because: it plays vectors to the bound that the plug-in's stores keep, inside their JVM.
package penstock.testing

import scala.jdk.CollectionConverters._

import penstock.commit.jvm.JvmResources
import penstock.eviction.LeastTime
import penstock.wire.Json

/** Answers the vectors that the Python twin is held to as well. */
object EvictionPlay {
  def answer(vector: String): String = {
    val least = new LeastTime
    val answer = Json.createArrayNode()
    Json.readTree(vector).path("events").elements().asScala.foreach { event =>
      val value = event.get(1)
      event.get(0).asText() match {
        case "opened" => least.opened(isEmpty = value.asLong() != 0)
        case "put" => if (!value.isNull) least.put(value.asLong())
        case "read" => if (!value.isNull) least.read(value.asLong())
        case "begun" => least.begun(value.asLong())
        case "measured" => least.measured(value.asLong())
        case "removed" => least.removed()
        case "ended" => least.ended()
        case "forgotten" => least.forgotten()
        case "ask" => answer.add(least.maySkip(value.asLong()))
      }
    }
    answer.toString
  }

  /** How many task attempts have scans declared; none when no task runs. */
  def attempts: Int = JvmResources.here.evictionScans.size
}
