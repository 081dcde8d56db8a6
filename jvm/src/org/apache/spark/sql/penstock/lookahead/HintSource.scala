// Scala because: it travels with the code of tasks and evaluates expressions of Spark's plan.
package org.apache.spark.sql.penstock.lookahead

import java.util.UUID

import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression}
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{StateStoreId, StateStoreProviderId}
import org.apache.spark.sql.types.DataType

import penstock.prefetch.Candidate

/** Where the state of an operator lies: by partition and name of the store. */
private[lookahead] final case class StateLocation(root: String, run: UUID, operator: Long) {
  def store(partition: Int, name: String): StateStoreProviderId =
    StateStoreProviderId(StateStoreId(root, operator, partition, name), run)
}

private[lookahead] object StateLocation {
  def of(info: StatefulOperatorStateInfo): StateLocation =
    StateLocation(info.checkpointLocation, info.queryRunId, info.operatorId)
}

/** A carried key, bound to the columns of the rows that it is computed from. */
private[lookahead] final case class BoundKey(
    key: Seq[Expression],
    conditions: Seq[Expression],
    at: Option[Expression],
    partition: Option[Expression]) {

  def all: Seq[Expression] = conditions ++ key ++ partition ++ at
}

private[lookahead] object BoundKey {
  def of(carried: CarriedKey, output: Seq[Attribute]): BoundKey = {
    def bound(expression: Expression): Expression = BindReferences.bindReference(expression, output)
    BoundKey(
      carried.key.map(bound), carried.conditions.map(bound), carried.at.map(bound),
      carried.partition.map(bound))
  }
}

/**
 * What a node of the plan hints, as tasks need it.
 *
 * @param batch that hints, by which the version of the state is numbered
 * @param input which of the inputs of the operator the rows are of
 * @param keys none where the node only takes times
 * @param hotThreshold how often a key comes that is not hinted any more, when a run begins
 * @param reads how far the batch reads each stream of the log
 * @param ahead what follows the batch in the log, where rows are hinted that still wait there
 * @param hintsHere the state is read by the task that hints it, as it is above the shuffle
 */
private[lookahead] final case class HintSource(
    candidate: Candidate,
    location: StateLocation,
    batch: Long,
    input: Int,
    keys: Seq[BoundKey],
    keyTypes: Seq[DataType],
    stores: Seq[StoreRead],
    hintsHere: Boolean,
    times: PassTimes,
    hotThreshold: Int,
    reads: Map[String, Long],
    ahead: Option[AheadSource] = None) {

  def open(partition: Int): TaskHints = new TaskHints(this, partition)

  def run: String = location.run.toString
}
