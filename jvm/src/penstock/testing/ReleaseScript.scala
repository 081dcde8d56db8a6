// Scala because: it plays vectors to the driver's Release, inside the JVM that runs it.
package penstock.testing

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import penstock.Bug
import penstock.commit._
import penstock.commit.driver.Release
import penstock.wire.Json

/**
 * Plays a script of events to a Release and writes down what it answers, in the form of the
 * vectors that its Python twin is held to as well.
 */
object ReleaseScript {
  def play(script: String): String = {
    val vector = Json.readTree(script)
    val release = new Release(
      vector.path("first").asLong(),
      vector.path("recorded").asBoolean(),
      vector.path("with_log").asBoolean(),
      vector.path("behind").asLong(),
      vector.path("offsets_in_marker").asBoolean())
    val steps = Json.createArrayNode()
    vector.path("steps").elements().asScala.foreach { step =>
      steps.add(answered(release, release.on(eventOf(step.path("event"))), step))
    }
    steps.toString
  }

  private def answered(release: Release, effects: Seq[Effect], step: JsonNode): ObjectNode = {
    val answer = Json.createObjectNode()
    answer.set[ObjectNode]("event", step.path("event"))
    val list = answer.putArray("effects")
    effects.foreach(effect => list.add(json(effect)))
    answer
      .put("released", release.released)
      .put("committed", release.committed)
      .put("copied", release.copied)
      .put("stopped", release.stopped.orNull)
      .put("idle", release.isIdle)
      .put("computes", last(release)(release.mayCompute))
      .put("places", last(release)(release.mayMakeDurable(_, isLarge = true)))
      .put("appends", release.mayMakeDurable(release.released + 1, isLarge = false))
      .put("shows", last(release)(release.mayShowSnapshot(_, isRequired = false)))
      .put("shows_required", last(release)(release.mayShowSnapshot(_, isRequired = true)))
    val awaited = answer.putArray("awaited")
    release.awaited.foreach(awaited.add)
    val writes = answer.putArray("writes")
    effects.collect { case PutMarker(batch) =>
      release.durableWrites(batch).toSeq.sorted.foreach { case (piece, (writer, generation)) =>
        writes.addObject().put("piece", piece).put("writer", writer).put("generation", generation)
      }
    }
    answer
  }

  /** The last batch for which it holds. */
  private def last(release: Release)(may: Long => Boolean): Long =
    Iterator.iterate(release.copied)(_ + 1).find(batch => !may(batch + 1)).get

  private def eventOf(node: JsonNode): Event = {
    def batch = node.path("batch").asLong()
    def text(name: String) = node.path(name).asText()
    def generation = node.path("generation").asLong()
    text("type") match {
      case "offsets" => OffsetsWritten(batch)
      case "written" => PieceWritten(batch, text("piece"), text("writer"), generation)
      case "durable" => PieceDurable(batch, text("piece"), text("writer"), generation)
      case "commit" =>
        CommitWritten(batch, node.path("required").elements().asScala.map(_.asText()).toSet)
      case "delete" => DeleteAsked(text("path"))
      case "lost" => WriterLost(text("writer"))
      case "done" => Done(effectOf(node.path("effect")))
      case "failed" => Failed(effectOf(node.path("effect")), text("reason"))
      case other => throw new Bug("unknown_event", s"a script has an event '$other'")
    }
  }

  private def effectOf(node: JsonNode): Effect = {
    val batch = node.path("batch").asLong()
    node.path("type").asText() match {
      case "put offsets" => PutOffsets(batch)
      case "put marker" => PutMarker(batch)
      case "put commit" => PutCommit(batch)
      case "copy" => CopyBatch(batch)
      case "delete file" => Delete(node.path("path").asText())
      case "stop" => Stop(node.path("reason").asText())
      case other => throw new Bug("unknown_effect", s"a script has an effect '$other'")
    }
  }

  private def json(effect: Effect): ObjectNode = {
    val node = Json.createObjectNode()
    effect match {
      case PutOffsets(batch) => node.put("type", "put offsets").put("batch", batch)
      case PutMarker(batch) => node.put("type", "put marker").put("batch", batch)
      case PutCommit(batch) => node.put("type", "put commit").put("batch", batch)
      case CopyBatch(batch) => node.put("type", "copy").put("batch", batch)
      case Delete(path) => node.put("type", "delete file").put("path", path)
      case Stop(reason) => node.put("type", "stop").put("reason", reason)
    }
  }
}
