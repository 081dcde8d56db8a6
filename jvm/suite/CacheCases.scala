package org.apache.spark.sql.execution.streaming.state.contract

import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicBoolean

import penstock.prefetch.Candidate
import penstock.prefetch.contract.{CacheModel, CacheRig, PoolRig}

import Checks._

/** The cache by itself, without RocksDB: held to a plain map, and to what it promises beside that. */
object CacheCases extends Cases {

  check("a_cache_answers_as_a_plain_map_wherever_fetches_are_held", once) { _ =>
    CacheModel.playAll(histories = 600, steps = 150)
  }

  check("shutting_waits_for_the_last_fetch_and_forgets_all", once) { _ =>
    val rig = new CacheRig()
    val (reading, letGo) = (new CountDownLatch(1), new CountDownLatch(1))
    rig.native.put("a", "1")
    rig.hint(10 -> "a")
    rig.native.onRead = () => {
      reading.countDown()
      letGo.await()
    }
    val fetching = aside(rig.fetchAll())
    reading.await()
    val shutting = aside {
      rig.store.shut()
      rig.native.close()
    }
    Thread.sleep(100)
    holds("the store is not shut while it is read")(!shutting.isOver)
    letGo.countDown()
    fetching.join()
    shutting.join()
    equal("bytes cached", rig.cache.bytes, 0L)
    equal("reads of a closed store", rig.native.readsWhileClosed, 0)
  }

  check("a_task_waits_for_a_key_in_flight_and_reads_nothing_itself", once) { _ =>
    val rig = new CacheRig()
    val (reading, letGo) = (new CountDownLatch(1), new CountDownLatch(1))
    rig.native.put("a", "1")
    rig.hint(10 -> "a")
    rig.native.onRead = () => {
      reading.countDown()
      letGo.await()
    }
    val fetching = aside(rig.fetchAll())
    reading.await()
    val task = aside(rig.get("a"))
    Thread.sleep(100)
    holds("the task waits")(!task.isOver)
    letGo.countDown()
    equal("the value", task.join(), Some("1"))
    fetching.join()
    equal("reads", rig.native.reads, 1)
    val counts = rig.counts()
    equal("hits, misses, waited", (counts.hits, counts.misses, counts.waited), (1L, 0L, 1L))
    equal("used", rig.usedOf(counts), 1L)
  }

  check("a_task_that_has_waited_for_a_fetch_long_enough_reads_itself", once) { _ =>
    val rig = new CacheRig()
    val (reading, letGo) = (new CountDownLatch(1), new CountDownLatch(1))
    val isFirst = new AtomicBoolean(true)
    rig.native.put("a", "1")
    rig.hint(10 -> "a")
    rig.native.onRead = () => if (isFirst.compareAndSet(true, false)) {
      reading.countDown()
      letGo.await()
    }
    val fetching = aside(rig.fetchAll())
    reading.await()
    val task = aside(rig.get("a"))
    rig.clock.awaitSleeper()
    rig.clock.turn(60000)
    equal("the value", task.join(), Some("1"))
    letGo.countDown()
    fetching.join()
    equal("reads", rig.native.reads, 2)
    rig.cache.check()
  }

  check("no_work_is_left_for_want_of_a_thread_that_was_woken", once) { _ =>
    equal("pieces of work that were done", new PoolRig().perform(5000), 5000)
  }

  check("what_is_hinted_and_unread_stays_and_hints_over_the_budget_wait", once) { _ =>
    val rig = new CacheRig(entries = 4)
    val keys = (1 to 10).map(n => f"k$n%02d")
    keys.foreach(rig.native.put(_, "1"))
    rig.hint(keys.map(10 -> _): _*)
    rig.fetchAll()
    holds(s"no more is fetched than fits: ${rig.native.reads}")(rig.native.reads <= 4)
    val first = rig.native.reads
    keys.foreach { key =>
      equal(key, rig.get(key), Some("1"))
      rig.fetchAll()
    }
    equal("each is read once", rig.native.reads, 10)
    val counts = rig.counts()
    equal("reads by the task", counts.misses, 0L)
    equal("used", rig.usedOf(counts), 10L)
    holds("some were fetched later")(first < 10)
  }

  check("what_was_hinted_and_never_read_is_counted_when_its_batch_is_over", once) { _ =>
    val rig = new CacheRig()
    rig.hint(10 -> "a", 11 -> "b")
    rig.fetchAll()
    rig.get("a")
    equal("unused before", rig.unusedOf(rig.counts()), 0L)
    rig.store.endBatch()
    val counts = rig.counts()
    equal("unused", rig.unusedOf(counts), 1L)
    rig.store.endBatch()
    equal("counted once", rig.unusedOf(rig.counts()), 0L)
    holds("an absence is cached too")(rig.reads(rig.get("b")) == 0)
  }

  check("hints_of_a_batch_that_is_over_are_dropped", once) { _ =>
    val rig = new CacheRig()
    rig.hint(10 -> "a")
    rig.store.endBatch()
    rig.fetchAll()
    equal("reads", rig.native.reads, 0)
    equal("dropped as over", rig.counts().dropped, 1L)
  }

  check("rows_hinted_in_the_log_are_judged_after_the_batch_that_read_them", once) { _ =>
    val rig = new CacheRig()
    rig.hintInLog(position = 40, "a", "b")
    rig.fetchAll()
    Seq(5, 10, 20, 30, 39).foreach { until =>
      rig.readTo = until
      rig.store.endBatch()
      equal(s"unused of rows behind $until", rig.counts().unused(Candidate.A), 0L)
    }
    rig.readTo = 45
    rig.get("a")
    equal("before the batch is over", rig.counts().unused(Candidate.A), 0L)
    rig.store.endBatch()
    equal("unused", rig.counts().unused(Candidate.A), 1L)
  }

  check("one_budget_serves_all_stores", once) { _ =>
    val rig = new CacheRig(entries = 4)
    val other = rig.another()
    (1 to 4).foreach(n => rig.get(s"k$n"))
    (1 to 4).foreach(n => other.get(s"k$n"))
    rig.cache.check()
    holds(s"${rig.cache.bytes} bytes are held")(rig.cache.bytes <= rig.cache.bytesMax)
    equal("evicted from the first", rig.counts().evictions, 4L)
    equal("reads of the second", other.reads((1 to 4).foreach(n => other.get(s"k$n"))), 0)
  }

  check("a_fetch_that_fails_leaves_the_read_to_the_task", once) { _ =>
    val rig = new CacheRig()
    rig.native.put("a", "1")
    rig.hint(10 -> "a")
    rig.native.onRead = () => throw new IllegalStateException("planned")
    rig.fetchAll()
    fails("the task's own read", "planned")(rig.get("a"))
    rig.native.onRead = () => ()
    equal("the value", rig.get("a"), Some("1"))
    equal("dropped", rig.counts().dropped, 1L)
  }

  check("written_back_entries_reach_the_store_when_they_are_evicted", once) { _ =>
    val rig = new CacheRig(entries = 4, isBack = true)
    (1 to 4).foreach(n => rig.put(s"k$n", "1"))
    equal("nothing is written yet", rig.native.size, 0)
    (5 to 6).foreach(n => rig.put(s"k$n", "1"))
    rig.fetchAll()
    holds(s"${rig.native.size} are written")(rig.native.size >= 1)
    (1 to 6).foreach(n => equal(s"k$n", rig.get(s"k$n"), Some("1")))
    rig.store.endBatch()
    equal("all are written", rig.native.size, 6)
    rig.cache.check()
  }

  check("a_fetch_that_has_read_before_an_entry_was_written_back_is_thrown_away", once) { _ =>
    val rig = new CacheRig(entries = 4, isBack = true)
    rig.native.put("k", "0")
    rig.hint(10 -> "k")
    rig.put("k", "1")
    val end = rig.heldFetch()
    rig.store.writeOut()
    (1 to 8).foreach(n => rig.get(s"other$n"))
    end()
    equal("the value", rig.get("k"), Some("1"))
  }

  check("a_store_whose_run_is_over_keeps_only_what_is_not_written", once) { _ =>
    val rig = new CacheRig(isBack = true)
    rig.native.put("read", "1")
    rig.get("read")
    rig.put("put", "2")
    rig.hint(10 -> "hinted")
    rig.store.retire()
    rig.fetchAll()
    equal("what the task reads", (rig.get("read"), rig.get("put")), (Some("1"), Some("2")))
    equal("stores that are open", rig.cache.storesOpen, 0)
    rig.store.endBatch()
    equal("rows of the store", rig.native.size, 2)
    equal("bytes cached", rig.cache.bytes, 0L)
    rig.cache.check()
  }

  check("a_batch_whose_writes_were_dropped_is_not_committed", once) { _ =>
    val rig = new CacheRig(isBack = true)
    rig.put("a", "1")
    rig.store.shut()
    fails("the commit", "dropped before they were committed")(rig.store.endBatch())
    rig.store.open()
    rig.store.endBatch()
  }

  check("removals_within_a_change_of_many_keys_reach_the_store", once) { _ =>
    val rig = new CacheRig(isBack = true)
    Seq("a", "b").foreach(rig.put(_, "1"))
    rig.store.aroundFamily("default")(Seq("a", "b").foreach(rig.remove))
    equal("what is left", (rig.get("a"), rig.get("b"), rig.native.size), (None, None, 0))
    rig.put("a", "2")
    equal("a later write is kept back as before", rig.native.size, 0)
  }
}
