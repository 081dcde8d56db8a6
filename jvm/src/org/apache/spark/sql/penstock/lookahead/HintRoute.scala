// Scala because: tasks ask the state stores of their own JVM what is loaded here.
package org.apache.spark.sql.penstock.lookahead

import scala.collection.mutable

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreProviderId}

import penstock.commit.jvm.JvmResources
import penstock.prefetch.HintBatch

/** The way of hints to the executor whose state they are for. */
private[lookahead] trait HintRoute {
  def send(store: StateStoreProviderId, hints: HintBatch): Unit
}

private[lookahead] object HintRoute {

  /** For one task. A local application has all its state in this JVM. */
  def open(source: HintSource): HintRoute =
    if (source.hintsHere || SparkEnv.get.executorId == SparkContext.DRIVER_IDENTIFIER) Here else new ByStore

  private object Here extends HintRoute {
    override def send(store: StateStoreProviderId, hints: HintBatch): Unit = {
      JvmResources.here.prefetch.hint(hints)
      ()
    }
  }

  /** Looks once a task and store whether it is loaded here, and sends the rest to the driver. */
  private final class ByStore extends HintRoute {
    private val isHere = mutable.HashMap.empty[StateStoreProviderId, Boolean]

    override def send(store: StateStoreProviderId, hints: HintBatch): Unit =
      if (isHere.getOrElseUpdate(store, StateStore.isLoaded(store))) Here.send(store, hints)
      else HintChannel.toDriver(store, hints)
  }
}
