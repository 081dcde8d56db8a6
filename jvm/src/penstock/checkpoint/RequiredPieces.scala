// Scala because: it reads the stateful operators from Spark's physical plan, after every batch.
package penstock.checkpoint

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.penstock.RunningQuery

import penstock.checkpoint.location.StateFile
import penstock.wire.Json

/** The pieces of state without which a batch cannot be recovered. */
private[checkpoint] object RequiredPieces {

  /**
   * With checkpoint format 2 the bytes of `commits/N` name them; with format 1 they are every
   * store of every partition of every stateful operator of the plan, since empty ones commit too.
   */
  def of(query: String, batch: Long, commit: Array[Byte]): Set[String] = {
    val json = new String(commit, "UTF-8").linesIterator.drop(1).nextOption().getOrElse("{}")
    val ids = Json.readTree(json).path("stateUniqueIds")
    if (ids.isObject) {
      ids.elements().asScala.flatMap(_.elements().asScala).flatMap(_.elements().asScala)
        .map(_.asText()).toSet
    } else {
      RunningQuery.stores(query).map { case (operator, partition, store) =>
        StateFile.pieceOf(operator.toString, partition.toString, store, batch + 1)
      }.toSet
    }
  }
}
