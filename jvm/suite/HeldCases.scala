package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.spark.sql.execution.streaming.state.StateStoreProvider

import Checks._
import Rows._

/** A run with a release queue: what is held back, what waits for it, and what does not. */
object HeldCases extends Cases {
  private def task(
      rig: StoreRig,
      of: StateStoreProvider,
      version: Long,
      rows: ((String, Int), Int)*): Unit = {
    val store = rig.getStore(of, version)
    put(store, rows: _*)
    rig.begin(version)
    rig.commitTask(store)
    rig.end(version, Seq(store.id))
  }

  check("a_commit_that_is_held_back_delays_only_the_one_after_the_next", allOf(held, full)) { rig =>
    // batch 1: its offsets are held until they are let go. batch 2 computes on its state at once;
    // the commit of batch 2 waits for batch 1, and the load of batch 3 for the commit of batch 2.
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.location.hold(1)
    val both = aside {
      task(rig, provider, 1, ("b", 2) -> 2)
      task(rig, provider, 2, ("c", 3) -> 3)
    }
    eventually("two batches end while the first is held back")(both.isOver)
    both.join()
    holds(s"nothing of them is in the location: ${rig.files()}") {
      !rig.hasVersion(2) && !rig.hasVersion(3)
    }
    val third = aside(rig.getStore(provider, 3))
    Thread.sleep(500)
    holds("the load of batch 3 waits")(!third.isOver)
    rig.location.letGo()
    val store = third.join()
    equal("version 3", all(store).keySet, Set(("a", 1), ("b", 2), ("c", 3)))
    put(store, ("d", 4) -> 4)
    rig.commit(store)
    equal("version 4", rig.readAnew(4).size, 4)
  }

  check("state_that_is_held_back_is_served_to_this_run_only", allOf(held, changelog, single)) { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.location.hold(1)
    task(rig, provider, 1, ("b", 2) -> 2)
    val other = rig.provider(minDeltas = 100)
    equal("version 2 in this run", rig.read(other, 2).size, 2)
    rig.location.letGo()
    rig.settle()
    rig.restart()
    equal("version 2 in the next", rig.readAnew(2).size, 2)
  }

  check("metrics_of_a_commit_that_is_held_back_are_its_own", allOf(held, full)) { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.location.hold(1)
    task(rig, provider, 1, ("b", 2) -> 2)
    val store = rig.getStore(provider, 2)
    put(store, ("c", 3) -> 3, ("d", 4) -> 4)
    rig.begin(2)
    rig.commitTask(store)
    val metrics = store.metrics
    rig.location.letGo()
    rig.end(2, Seq(store.id))
    equal("the number of keys", metrics.numKeys, 4L)
    holds("there are custom metrics")(metrics.customMetrics.nonEmpty)
    rig.settle()
  }

  check("a_task_that_is_killed_in_its_commit_can_be_aborted_and_run_again", held) { rig =>
    // The second attempt is made by the same provider, as on an executor that lives on.
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.location.hold(1)
    task(rig, provider, 1, ("b", 2) -> 2)
    val store = rig.getStore(provider, 2)
    put(store, ("c", 99) -> 99)
    rig.begin(2)
    val killed = aside {
      try store.commit()
      finally if (!store.hasCommitted) store.abort()
    }
    Thread.sleep(300)
    killed.thread.interrupt()
    Thread.sleep(300)
    rig.location.letGo()
    try killed.join()
    catch { case e: Throwable if !e.isInstanceOf[Broken] => }
    rig.queue.check()
    val again = rig.getStore(provider, 2)
    put(again, ("c", 3) -> 3)
    rig.commit(again)
    equal("version 3", rig.readAnew(3), Map(("a", 1) -> 1, ("b", 2) -> 2, ("c", 3) -> 3): Pairs)
  }

  check("a_provider_that_is_closed_loses_nothing_that_is_on_its_way", held) { rig =>
    val provider = rig.provider(scheme = "faulty")
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.faults("faulty", "hang create")
    val closing = aside {
      task(rig, provider, 1, ("b", 2) -> 2)
      provider.close()
    }
    Thread.sleep(300)
    rig.faults("faulty")
    closing.join()
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("another_provider_waits_for_state_that_is_on_its_way", held) { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    rig.location.hold(1)
    task(rig, provider, 1, ("b", 2) -> 2)
    val reading = aside(rig.read(rig.provider(minDeltas = 100), 2))
    Thread.sleep(300)
    rig.location.letGo()
    equal("version 2", reading.join(), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("many_stores_do_not_wait_for_one_another_in_a_ring", allOf(held, full)) { rig =>
    // More stores than threads that flush and upload. Store 0 is slow to flush its first batch, and
    // all others have made their second one meanwhile: their uploads wait for that of store 0.
    val providers = (0 until 7).map(n => rig.provider(partition = n))
    val stores = providers.map(rig.getStore(_, 0, force = true))
    stores.foreach(put(_, ("a", 1) -> 1))
    val isSlow = rig.slowCommit(0)
    rig.begin(0)
    stores.foreach(rig.commitTask)
    rig.end(0, stores.map(_.id))
    rig.begin(1)
    val next = providers.tail.map(rig.getStore(_, 1, force = true))
    next.foreach { store =>
      put(store, ("b", 2) -> 2)
      rig.commitTask(store)
    }
    Thread.sleep(300)
    isSlow.close()
    val last = rig.getStore(providers.head, 1, force = true)
    rig.commitTask(last)
    rig.end(1, (last +: next).map(_.id))
    eventually("both batches are committed")(rig.location.has("commits/1"))
  }

  check("a_second_attempt_that_is_given_up_takes_nothing_from_the_first", allOf(held, changelog, single)) {
    rig =>
      val provider = rig.provider(minDeltas = 100)
      rig.batch(provider, 0, ("a", 1) -> 1)
      rig.settle()
      rig.location.hold(1)
      task(rig, provider, 1, ("b", 2) -> 2)
      rig.getStore(provider, 1).abort()
      rig.location.letGo()
      equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_snapshot_that_its_batch_does_not_wait_for_waits_for_its_batch", allOf(held, changelog)) { rig =>
    val provider = rig.provider(minDeltas = 1)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    val store = rig.getStore(provider, 1)
    put(store, ("b", 2) -> 2)
    rig.begin(1)
    rig.commitTask(store)
    eventually("its changelog is there")(rig.hasVersion(2, ".changelog"))
    eventually("nothing of it is held any more")(rig.holdsNothing())
    eventually("its commit is over")(Threads.in("commit", "make").isEmpty)
    within("maintenance that waits for no batch", ms = 5000)(provider.doMaintenance())
    holds("it is not there")(!rig.hasVersion(2, ".zip"))
    rig.end(1, Seq(store.id))
    eventually("it is there")(rig.hasVersion(2, ".zip"))
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }
}
