package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.spark.sql.execution.streaming.state._

import Checks._
import Rows._

/** What a store tells of itself. */
object MetricCases extends Cases {

  check("the_number_of_keys_is_that_of_the_version_committed") { rig =>
    val provider = rig.provider()
    var expected = 0L
    (0 until 5).foreach { v =>
      val store = rig.getStore(provider, v)
      put(store, (0 to v).map(n => (s"batch $v", n) -> n): _*)
      put(store, ("same", 0) -> v)
      expected += v + 1 + (if (v == 0) 1 else 0)
      if (v == 3) {
        store.remove(key("batch 2", 0))
        expected -= 1
      }
      rig.commit(store)
      equal(s"the number of keys of version ${v + 1}", store.metrics.numKeys, expected)
    }
    rig.settle()
    val store = rig.getStore(rig.provider(), 5)
    put(store, ("one more", 0) -> 0)
    rig.commit(store)
    equal("the number of keys after a reload", store.metrics.numKeys, expected + 1)
  }

  check("an_abort_leaves_the_number_of_keys_as_it_was") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    val aborted = rig.getStore(provider, 1)
    put(aborted, ("b", 2) -> 2, ("c", 3) -> 3)
    aborted.abort()
    val store = rig.getStore(provider, 1)
    put(store, ("d", 4) -> 4)
    rig.commit(store)
    equal("the number of keys", store.metrics.numKeys, 2L)
  }

  check("metrics_are_those_the_provider_announces") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    val store = rig.getStore(provider, 1)
    put(store, ("b", 2) -> 2)
    store.get(key("a", 1))
    rig.commit(store)
    val metrics = store.metrics
    val names = metrics.customMetrics.keySet.map(_.name)
    val announced = provider.supportedCustomMetrics.map(_.name).toSet
    holds(s"${names -- announced} are announced")(names.subsetOf(announced))
    holds("there are custom metrics")(names.nonEmpty)
    holds("memory is used")(metrics.memoryUsedBytes > 0)
    equal(
      "the instance metrics",
      metrics.instanceMetrics.keySet.map(_.metricPrefix),
      provider.supportedInstanceMetrics.map(_.metricPrefix).toSet)
    val counts = metrics.customMetrics.map { case (metric, count) => metric.name -> count }
    if (rig.variant.isRocksDB) {
      holds("puts are counted")(counts("rocksdbPutCount") >= 1)
      holds("gets are counted")(counts("rocksdbGetCount") >= 1)
    } else holds("cache hits are counted")(counts("loadedMapCacheHitCount") >= 1)
  }

  check("metrics_of_several_stores_add_up") { rig =>
    val stores = (0 to 1).map { partition =>
      val store = rig.getStore(rig.provider(partition = partition), 0)
      put(store, (0 to partition).map(n => ("k", n) -> n): _*)
      rig.begin(0)
      rig.commitTask(store)
      store
    }
    rig.end(0, stores.map(_.id))
    val both = StateStoreMetrics.combine(stores.map(_.metrics))
    equal("the number of keys", both.numKeys, 3L)
    equal("the memory", both.memoryUsedBytes, stores.map(_.metrics.memoryUsedBytes).sum)
    rig.settle()
  }

  check("the_checkpoint_info_names_this_version_and_the_one_it_is_built_on", rocksDB) { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    val first = rig.getStore(provider, 1)
    fails("asking before the commit")(first.getStateStoreCheckpointInfo())
    rig.commit(first)
    val firstInfo = first.getStateStoreCheckpointInfo()
    val second = rig.getStore(provider, 2)
    rig.commit(second)
    val secondInfo = second.getStateStoreCheckpointInfo()
    equal("the versions", (firstInfo.batchVersion, secondInfo.batchVersion), (2L, 3L))
    equal("the partition", secondInfo.partitionId, 0)
    equal("there are ids", secondInfo.stateStoreCkptId.isDefined, rig.variant.format == 2)
    equal("what it is built on", secondInfo.baseStateStoreCkptId, firstInfo.stateStoreCkptId)
    val hasOneId = secondInfo.stateStoreCkptId == firstInfo.stateStoreCkptId
    holds("ids differ")(rig.variant.format == 1 || !hasOneId)
    rig.settle()
  }
}
