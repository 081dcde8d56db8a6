package org.apache.spark.sql.execution.streaming.state.contract

import java.io.File

import scala.collection.mutable
import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkConf
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.util.Utils

import penstock.commit.jvm.JvmResources
import penstock.prefetch.{Candidate, HintBatch, HintExpiry, PrefetchCounts}
import penstock.settings.{Keys, PrefetchSettings}

import Checks._
import Rows._

/** A provider with a cache in front of its RocksDB, and threads that fetch beside it. */
object CachedStoreCases extends Cases {
  /** So long that a machine which is busy with other work is not taken for a pause. */
  private val LongPauseMs = 20000L
  private val Small = 20000
  private val Large = 1 << 20

  /** Set in the environment of a suite whose stores are on a file system without direct reads. */
  private val WithoutDirectReads = "PENSTOCK_SUITE_WITHOUT_DIRECT_READS"

  /** With changelogs alone, and with column families. */
  private def some(variant: Variant): Option[String] = Option.when(
    !Set("ours-changelog", "ours-families-changelog").contains(variant.name))(
    "the cache is the same for all variants")

  /** Where stores keep their files. */
  private def disk: File = new File(Utils.getLocalDir(new SparkConf))

  private def cached(rig: StoreRig, order: String, bytes: Int = Large, writes: String = "through"): Unit = {
    rig.more(Keys.PrefetchCache.name) = order
    rig.more(Keys.PrefetchCacheBytes.name) = bytes.toString
    rig.more(Keys.PrefetchCacheWrites.name) = writes
  }

  private def hint(rig: StoreRig, provider: StateStoreProvider, keys: (String, Int)*): Unit =
    holds("the store that is hinted is open")(JvmResources.here.prefetch.hint(HintBatch(
      rig.runId,
      provider.stateStoreId.storeCheckpointLocation().toString,
      "default",
      Candidate.C,
      keys.map(k => 0.toByte +: key(k).getBytes).toArray,
      keys.map(_ => 1000L).toArray,
      HintExpiry.of(Candidate.C, batch = 1))))

  private def counts(rig: StoreRig): PrefetchCounts = JvmResources.here.prefetch.counts(rig.runId).head

  private def numbered(from: Int, until: Int): Seq[((String, Int), Int)] =
    (from until until).map(n => ("row", n) -> n)

  private val settings = Seq[(String, Int, String, Variant => Option[String])](
    ("timestamp", Small, "through", some(_)),
    ("timestamp", Small, "back", some(_)),
    ("timestamp", Large, "through", once(_)),
    ("timestamp", 200, "back", once(_)),
    ("lru", Small, "back", once(_)),
    ("clock", Small, "through", once(_)))

  settings.foreach { case (order, bytes, writes, skip) =>
    check(s"a_store_with_a_cache_answers_as_a_plain_map: $order, $bytes bytes, $writes", skip) { rig =>
      cached(rig, order, bytes, writes)
      new RandomBatches(rig, seed = bytes.toLong).play(batches = 9)
    }
  }

  check("what_is_hinted_is_in_memory_when_it_is_asked_for", some) { rig =>
    cached(rig, "timestamp")
    val provider = rig.provider()
    rig.batch(provider, 0, numbered(0, 50): _*)
    rig.settle()
    val anew = rig.provider()
    val first = rig.getStore(anew, 1)
    hint(rig, anew, (0 until 60).map(("row", _)): _*)
    // Taking the counts begins them anew.
    var fetched = 0L
    eventually("all of it is fetched") {
      fetched += counts(rig).accessTimes.total
      fetched == 60
    }
    (0 until 60).foreach { n =>
      equal(s"row $n", number(first.get(key("row", n))), Option.when(n < 50)(n))
    }
    rig.commit(first)
    val counted = counts(rig)
    equal("hits and misses", (counted.hits, counted.misses), (60L, 0L))
    equal(
      "used and unused",
      (counted.used(Candidate.C), counted.unused(Candidate.C)),
      (60L, 0L))
    equal("reads of RocksDB by the task", counted.accessTimes.total, 0L)
  }

  check("a_load_that_finds_its_version_open_keeps_what_is_cached", some) { rig =>
    cached(rig, "lru")
    val provider = rig.provider()
    val first = rig.getStore(provider, 0)
    put(first, numbered(0, 20): _*)
    (0 until 20).foreach(n => first.get(key("row", n)))
    rig.commit(first)
    counts(rig)
    val second = rig.getStore(provider, 1)
    (0 until 20).foreach(n => equal(s"row $n", number(second.get(key("row", n))), Some(n)))
    put(second, ("row", 3) -> 33)
    equal("a cached value that was put", number(second.get(key("row", 3))), Some(33))
    second.remove(key("row", 4))
    holds("a cached value that was removed")(!second.keyExists(key("row", 4)))
    rig.commit(second)
    val counted = counts(rig)
    equal("hits and misses", (counted.hits, counted.misses), (22L, 0L))
  }

  check("an_aborted_batch_leaves_nothing_in_the_cache", some) { rig =>
    Seq("through", "back").foreach { writes =>
      cached(rig, "timestamp", writes = writes)
      val provider = rig.provider(partition = if (writes == "back") 1 else 0)
      val store = rig.getStore(provider, 0)
      put(store, ("a", 1) -> 1)
      store.get(key("a", 1))
      store.abort()
      val again = rig.getStore(provider, 0)
      equal("the aborted value", number(again.get(key("a", 1))), None)
      again.abort()
    }
  }

  check("reads_during_a_scan_fill_nothing", some) { rig =>
    cached(rig, "timestamp")
    val provider = rig.provider()
    rig.batch(provider, 0, numbered(0, 20): _*)
    val store = rig.getStore(provider, 1)
    val rows = store.iterator()
    rows.foreach(row => store.get(row.key.copy()))
    rows.close()
    val counted = counts(rig)
    equal("counted, cached", (counted.hits, counted.misses, counted.bytes), (0L, 0L, 0L))
    store.get(key("row", 1))
    holds("after it they do")(counts(rig).bytes > 0)
    store.abort()
  }

  check("a_slow_read_takes_a_millisecond_if_it_needs_a_block", some) { rig =>
    cached(rig, "timestamp")
    rig.more(Keys.PrefetchReads.name) = "slow1ms"
    val provider = rig.provider(minDeltas = 1)
    // Its commit takes a snapshot, so that no row is left in the memtable.
    rig.batch(provider, 0, numbered(0, 200): _*)
    val slow = rig.getStore(provider, 1)
    equal("a cold row", number(slow.get(key("row", 7))), Some(7))
    holds("it took its time")(counts(rig).accessTimes.percentileNs(1) >= 1000000)
    val delay = JvmResources.here.declaredDelay
    delay.declare(LongPauseMs)
    try {
      within("a row of the same block, and one in the cache", LongPauseMs / 2) {
        equal("a row of the same block", number(slow.get(key("row", 8))), Some(8))
        equal("a row in the cache", number(slow.get(key("row", 7))), Some(7))
      }
      equal("reads of RocksDB for them", counts(rig).misses, 1L)
    } finally delay.declare(1)
    slow.abort()
    rig.more.remove(Keys.PrefetchReads.name)
  }

  check("direct_reads_are_made_or_a_store_stops_in_a_sentence", once) { rig =>
    rig.more(Keys.PrefetchReads.name) = "direct"
    val isPossible = DirectReads.isPossibleIn(disk)
    holds("there are none where the suite is told so")(!isPossible || !sys.env.contains(WithoutDirectReads))
    if (isPossible) {
      rig.batch(rig.provider(), 0, ("a", 1) -> 1)
      equal("a row", rig.readAnew(1), Map(("a", 1) -> 1): Pairs)
    } else {
      fails("a store with direct reads", "no direct reads", "spark.local.dir", disk.getPath) {
        rig.batch(rig.provider(), 0, ("a", 1) -> 1)
      }
    }
  }

  check("direct_reads_are_set_where_a_folder_has_them_and_nowhere_else", once) { _ =>
    val options = new org.rocksdb.Options()
    fails("direct reads where there are none", "no direct reads", "spark.local.dir", disk.getName)(
      DirectReads.enable(options, disk, _ => false))
    holds("nothing is set then")(!options.useDirectReads)
    DirectReads.enable(options, disk, _ => true)
    holds("they are set where they are possible")(options.useDirectReads)
    options.close()
  }

  check("a_cache_of_more_than_a_quarter_of_the_heap_is_refused", once) { _ =>
    val conf = new Configuration
    conf.set(Keys.PrefetchCacheBytes.name, (Runtime.getRuntime.maxMemory / 3).toString)
    fails("the settings", "more than a quarter of this JVM's heap")(new PrefetchSettings(conf).check())
  }
}

/** Batches of random reads and writes of one partition, with hints, aborts and loads anew. */
final class RandomBatches(rig: StoreRig, seed: Long) {
  private val random = new Random(seed)
  private val committed = mutable.Map.empty[(String, Int), Int]
  private val now = mutable.Map.empty[(String, Int), Int]
  private var provider = rig.provider()
  private var version = 0L

  def play(batches: Int): Unit = {
    (1 to batches).foreach(_ => batch())
    rig.settle()
    equal("all of it anew", rig.read(rig.provider(), version), committed.toMap: Pairs)
  }

  private def batch(): Unit = {
    hints()
    now.clear()
    now ++= committed
    val store = rig.getStore(provider, version)
    (1 to 150).foreach(_ => step(store))
    random.nextInt(6) match {
      case 0 => store.abort()
      case 1 =>
        store.abort()
        // Versions that are on their way must have arrived for another store.
        rig.settle()
        provider = rig.provider()
      case _ =>
        version = rig.commit(store)
        committed.clear()
        committed ++= now
    }
  }

  private def step(store: StateStore): Unit = {
    val at = pair()
    random.nextInt(12) match {
      case 0 | 1 | 2 | 3 => equal(s"$at", number(store.get(key(at))), now.get(at))
      case 4 => equal(s"$at exists", store.keyExists(key(at)), now.contains(at))
      case 5 | 6 | 7 =>
        val fresh = random.nextInt(1000)
        store.put(key(at), value(fresh))
        now(at) = fresh
      case 8 =>
        store.remove(key(at))
        now -= at
      case 9 => if (random.nextInt(8) == 0) equal("a scan", all(store), now.toMap: Pairs)
      case _ => hints()
    }
  }

  private def hints(): Unit = {
    val keys = Seq.fill(1 + random.nextInt(40))(pair())
    JvmResources.here.prefetch.hint(HintBatch(
      rig.runId,
      provider.stateStoreId.storeCheckpointLocation().toString,
      "default",
      Candidate.all(random.nextInt(4)),
      keys.map(k => 0.toByte +: key(k).getBytes).toArray,
      keys.map(_ => random.nextInt(10000).toLong).toArray,
      HintExpiry(version)))
  }

  private def pair(): (String, Int) = ("key", random.nextInt(300))
}
