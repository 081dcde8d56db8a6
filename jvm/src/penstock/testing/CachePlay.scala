// Scala because: it plays vectors to the orders and the sketch of the jar itself.
package penstock.testing

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import penstock.prefetch.{CountMinSketch, Entry, EvictionOrder, HotBatch, HotThreshold}
import penstock.wire.Json

/** Answers the vectors that the Python twins of the cache are held to as well. */
object CachePlay {

  /** For each policy the key that leaves at every step that asks for one. */
  def victims(vector: String): String = {
    val steps = Json.readTree(vector).path("steps").elements().asScala.toSeq
    val answer = Json.createObjectNode()
    Seq("timestamp", "lru", "clock").foreach { policy =>
      val keys = answer.putArray(policy)
      victims(EvictionOrder.named(policy), steps).foreach(_.fold(keys.addNull())(keys.add))
    }
    answer.toString
  }

  /** How many keys of each group were hot. */
  def hot(vector: String): String = {
    val asked = Json.readTree(vector)
    val sketch = new CountMinSketch(() => asked.path("threshold").asInt())
    val answer = Json.createArrayNode()
    asked.path("groups").elements().asScala.foreach { group =>
      val (key, spread) = (group.path(0).asText(), group.path(2).asInt())
      val numbers = 0 until group.path(1).asInt()
      answer.add(numbers.count(number => sketch.isHot(s"$key${number % spread}".getBytes("UTF-8"))))
    }
    answer.toString
  }

  def tuned(vector: String): Int = {
    val asked = Json.readTree(vector)
    def number(name: String) = asked.path(name).asInt()
    val batch = HotBatch(number("reads"), number("misses"), number("suppressed"))
    HotThreshold.tuned(number("threshold"), number("start"), batch)
  }

  private def victims(order: EvictionOrder, steps: Seq[JsonNode]): Seq[Option[String]] = {
    val entries = mutable.Map.empty[String, Entry]
    steps.flatMap { step =>
      val (key, atMs) = (step.path(1).asText(), step.path(2).asLong())
      step.path(0).asText() match {
        case "add" =>
          entries(key) = new Entry(null, "", key.getBytes("UTF-8"), null, atMs)
          order.add(entries(key))
          None
        case "renew" =>
          entries(key).atMs = math.max(entries(key).atMs, atMs)
          order.renew(entries(key))
          None
        case "remove" =>
          order.remove(entries(key))
          None
        case act =>
          val victim = Option(order.victim())
          if (act == "evict") victim.foreach(order.remove)
          Some(victim.map(entry => new String(entry.bytes, "UTF-8")))
      }
    }
  }
}
