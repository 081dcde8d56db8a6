package org.apache.spark.sql.penstock.lookahead

import java.util.UUID
import java.util.concurrent.TimeoutException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.rpc.RpcAddress
import org.apache.spark.sql.execution.streaming.state.{StateStoreId, StateStoreProviderId}
import org.apache.spark.sql.execution.streaming.state.contract.{Cases, Checks, ManualClock}

import penstock.prefetch.{Candidate, HintBatch, HintExpiry, Prefetching, RelayedHints}
import penstock.prefetch.contract.CountedStore
import penstock.settings.PrefetchSettings

import Checks._

/** Hints that go by the driver to another executor, without a cluster. */
object RelayCases extends Cases {
  private val block = Array.empty[Byte]
  private val FirstAddress = RpcAddress("first", 1)
  private val SecondAddress = RpcAddress("second", 1)

  check("only_so_many_blocks_are_under_way_or_wait_and_the_rest_is_dropped_and_counted", once) { _ =>
    val relayed = new RelayedHints
    val answers = mutable.Buffer.empty[Promise[Boolean]]
    var taken = 0
    val way = new HintWay(
      _ => {
        answers += Promise[Boolean]()
        answers.last.future
      }, relayed, onTaken = () => taken += 1)
    val sent = Seq.fill(70)(way.send("a block")).count(identity)
    equal("blocks under way", (sent, answers.size), (64, 64))
    answers.head.success(true)
    answers(1).success(false)
    answers(2).failure(new IllegalStateException("planned"))
    equal("taken there, dropped there", (taken, relayed.droppedCount), (1, 2L))
    equal("what has room now", Seq.fill(5)(way.send("a block")).count(identity), 3)
    val driver = new HintRelay(relayed)
    val store = StateStoreProviderId(StateStoreId("/nowhere", 0, 0, "default"), UUID.randomUUID())
    equal("blocks that wait on the driver", Seq.fill(600)(driver.take(store, Array.empty)).count(identity), 512)
  }

  check("a_block_is_counted_as_passed_on_before_it_can_have_arrived", once) { _ =>
    val relayed = new RelayedHints
    val driver = new HintRelay(relayed)
    val passedBefore = mutable.Buffer.empty[Long]
    driver.joined("1", FirstAddress, _ => {
      passedBefore += relayed.passedCount
      Future.successful(true)
    })
    driver.pass(block, Some("1"))
    equal("passed on when it was sent", passedBefore.toSeq, Seq(1L))
    equal("arrived, dropped", (relayed.arrivedCount, relayed.droppedCount), (1L, 0L))
    driver.pass(block, Some("2"))
    driver.pass(block, None)
    equal("passed on, arrived, dropped",
      (relayed.passedCount, relayed.arrivedCount, relayed.droppedCount), (1L, 1L, 2L))
  }

  check("an_executor_that_is_gone_is_forgotten_and_one_that_is_late_is_not", once) { _ =>
    val relayed = new RelayedHints
    val driver = new HintRelay(relayed)
    driver.joined("1", FirstAddress, _ => Future.failed(new TimeoutException("planned")))
    driver.joined("2", SecondAddress, _ => Future.failed(new IllegalStateException("planned")))
    driver.pass(block, Some("1"))
    equal("executors beside one that is late", driver.executorCount, 2)
    driver.pass(block, Some("2"))
    equal("executors without one that nothing can be sent to", driver.executorCount, 1)
    driver.joined("3", SecondAddress, _ => throw new IllegalStateException("planned"))
    driver.pass(block, Some("3"))
    equal("executors without one that nothing could be sent to", driver.executorCount, 1)
    equal("blocks dropped", relayed.droppedCount, 3L)
    driver.left(SecondAddress)
    equal("executors after one has left that had not come", driver.executorCount, 1)
    driver.left(FirstAddress)
    equal("executors after the last one has left", driver.executorCount, 0)
  }

  check("a_block_for_a_store_that_has_moved_on_has_not_arrived", once) { _ =>
    val relayed = new RelayedHints
    val prefetch = new Prefetching(new ManualClock)
    val open = prefetch.open("run", "moved here", new CountedStore, new PrefetchSettings(new Configuration))
    def hints(store: String) = HintBatch(
      "run", store, "default", Candidate.C, Array("a".getBytes), Array(1L), HintExpiry.of(Candidate.C, batch = 0))
    holds("a block for the store is taken")(HintListener.take(hints("moved here"), prefetch, relayed))
    holds("one for another store of the run is not")(!HintListener.take(hints("moved on"), prefetch, relayed))
    equal("blocks that have arrived", relayed.arrivedCount, 1L)
    prefetch.close(open)
    prefetch.close()
  }
}
