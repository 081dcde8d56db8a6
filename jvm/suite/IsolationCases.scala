package org.apache.spark.sql.execution.streaming.state.contract

import java.nio.file.Files

import org.apache.spark.sql.execution.streaming.state.StateStoreProvider

import Checks._
import Rows._

/** A store that does not answer holds up its own query, and no other. */
object IsolationCases extends Cases {

  /** More than any pool has threads. */
  private val Partitions = 20

  private def round(rig: StoreRig, stores: Seq[StateStoreProvider], batch: Long, force: Boolean): Unit = {
    rig.begin(batch)
    val opened = stores.map(rig.getStore(_, batch, force))
    opened.foreach { store =>
      put(store, ("n", batch.toInt) -> 1)
      rig.commitTask(store)
    }
    rig.end(batch, opened.map(_.id))
  }

  Seq(true, false).foreach { force =>
    val kind = if (force) "snapshots" else "change_logs"
    check(s"a_store_that_takes_no_${kind}_holds_up_no_query_of_another", allOf(once, held)) { rig =>
      rig.restartWith(retrySeconds = 600)
      val stuck = (0 until Partitions).map { n =>
        rig.provider(scheme = "faulty", partition = n, minDeltas = 100)
      }
      round(rig, stuck, 0, force = false)
      rig.settle()
      rig.faults("faulty", "hang create")
      round(rig, stuck, 1, force)
      eventually("the store is asked")(Threads.in(if (force) "upload" else "copy", "operation").isDefined)
      round(rig, stuck, 2, force = false)
      val other = new StoreRig(
        rig.variant,
        Files.createDirectories(rig.root.getParent.resolveSibling(s"${rig.name}-other")))
      try {
        aside {
          val provider = other.provider(minDeltas = 100)
          (0 until 3).foreach { n =>
            val store = other.getStore(provider, n.toLong, force = true)
            put(store, ("o", n) -> n)
            other.commit(store)
          }
          other.settle()
        }.join()
        holds("its snapshots are there")(other.hasVersion(3, ".zip"))
        holds("the other store is still stuck")(!rig.location.has("commits/1"))
      } finally other.stop()
      rig.faults("faulty")
      rig.settle()
      holds("what was stuck is committed")(rig.location.has("commits/2"))
    }
  }

  check("a_commit_that_waits_too_long_for_the_state_before_stops_its_run_by_name", allOf(once, held)) { rig =>
    rig.restartImpatient()
    val stores = Seq(rig.provider(minDeltas = 100))
    round(rig, stores, 0, force = false)
    rig.settle()
    rig.location.hold(1)
    round(rig, stores, 1, force = false)
    round(rig, stores, 2, force = false)
    fails("the run", "commit of version 3", "state of batch 1", "not durable after 1 s") {
      eventually("the run has stopped") {
        rig.queue.check()
        false
      }
    }
  }
}
