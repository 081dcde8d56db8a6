package org.apache.spark.sql.execution.streaming.state.contract

import Checks._
import Rows._

/** Which versions can be had, and by how many at a time; snapshots and maintenance. */
object VersionCases extends Cases {

  check("a_version_that_does_not_exist_is_an_error") { world =>
    val provider = world.provider()
    fails("version -1")(world.getStore(provider, -1))
    fails("reading version -1")(world.getReadStore(provider, -1))
    world.batch(provider, 0, ("a", 1) -> 1)
    world.settle()
    if (world.variant.format == 1) {
      fails("a version of the future")(world.getStore(provider, 2))
      fails("reading one far ahead")(world.getReadStore(provider, 7))
    } else {
      val nobody = Some("00000000-0000-0000-0000-000000000000")
      fails("a version of the future")(provider.getStore(2, nobody))
      fails("an id that nobody wrote")(provider.getStore(1, nobody))
    }
    world.batch(provider, 1, ("b", 2) -> 2)
    equal("version 2", world.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_gap_is_an_error_and_never_an_older_state") { world =>
    val provider = world.provider(minDeltas = 100)
    (0 until 3).foreach(v => world.batch(provider, v, ("n", v) -> v))
    world.settle()
    world.deleteVersion(2)
    val other = world.provider(minDeltas = 100)
    fails("the version that is gone")(world.read(other, 2))
    if (world.variant.changelog || !world.variant.isRocksDB) {
      fails("the version built on it")(world.read(other, 3))
    }
    if (!world.variant.families) equal("version 1", world.read(other, 1), Map(("n", 0) -> 0): Pairs)
  }

  check("a_reader_and_a_writer_share_a_version") { world =>
    val provider = world.provider()
    world.batch(provider, 0, ("a", 1) -> 1)
    val reader = world.getReadStore(provider, 1)
    val writer =
      if (world.variant.isRocksDB) world.upgrade(provider, reader)
      else world.getStore(provider, 1)
    equal("what the writer sees", all(writer), Map(("a", 1) -> 1): Pairs)
    put(writer, ("b", 2) -> 2)
    equal("the version", world.commit(writer), 2L)
    if (!world.variant.isRocksDB) equal("the reader", all(reader), Map(("a", 1) -> 1): Pairs)
    equal("version 2", world.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_released_reader_makes_room_for_a_writer") { world =>
    val provider = world.provider()
    world.batch(provider, 0, ("a", 1) -> 1)
    val reader = world.getReadStore(provider, 1)
    if (world.variant.isRocksDB) {
      fails("a writer while another has the store", "UNRELEASED_THREAD")(world.getStore(provider, 1))
    }
    reader.release()
    reader.release()
    world.batch(provider, 1, ("b", 2) -> 2)
    equal("version 2", world.read(provider, 2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_reader_becomes_the_writer_and_can_abort", rocksDB) { world =>
    val provider = world.provider()
    world.batch(provider, 0, ("a", 1) -> 1)
    val reader = world.getReadStore(provider, 1)
    fails("another version")(provider.upgradeReadStoreToWriteStore(reader, 2))
    val writer = world.upgrade(provider, reader)
    holds("it is the same store")(writer eq reader)
    put(writer, ("a", 1) -> 99)
    writer.abort()
    world.batch(provider, 1, ("b", 2) -> 2)
    equal("version 2", world.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_closed_provider_takes_what_it_was_given_with_it") { world =>
    val provider = world.provider()
    world.batch(provider, 0, ("a", 1) -> 1)
    world.batch(provider, 1, ("b", 2) -> 2)
    provider.close()
    provider.close()
    equal("version 2", world.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_forced_snapshot_is_made_and_counted") { world =>
    val provider = world.provider(minDeltas = 100)
    world.batch(provider, 0, ("a", 1) -> 1)
    world.settle()
    val store = world.getStore(provider, 1, force = true)
    put(store, ("b", 2) -> 2)
    world.commit(store)
    val counted = store.metrics.customMetrics.collect {
      case (metric, count) if metric.name.contains("orceSnapshotCount") => count
    }
    equal("the metric", counted.toSeq, Seq(1L))
    world.settle()
    val ending = if (world.variant.isRocksDB) ".zip" else ".snapshot"
    holds(s"there is a snapshot of version 2 in ${world.files()}")(world.hasVersion(2, ending))
    equal("version 2", world.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("maintenance_makes_snapshots_that_can_be_loaded") { world =>
    val provider = world.provider()
    (0 until 5).foreach { v =>
      world.batch(provider, v, ("n", v) -> v)
      world.settle()
      provider.doMaintenance()
    }
    if (world.variant.changelog) {
      holds(s"a snapshot is there: ${world.files()}")(world.files().exists(_.endsWith(".zip")))
    }
    equal("version 5", world.readAnew(5).size, 5)
    equal("version 4", world.readAnew(4).size, 4)
  }

  check("maintenance_that_fails_harms_nobody") { world =>
    val provider = world.provider(scheme = "faulty")
    (0 until 4).foreach(v => world.batch(provider, v, ("n", v) -> v))
    world.settle()
    world.faults("faulty", "fail list", "fail create", "fail rename", "fail delete")
    provider.doMaintenance()
    world.faults("faulty")
    world.batch(provider, 4, ("n", 4) -> 4)
    provider.doMaintenance()
    equal("version 5", world.readAnew(5).size, 5)
  }

  check("a_long_run_with_maintenance_beside_it_stays_right") { world =>
    val provider = world.provider()
    var expected: Pairs = Map.empty
    (0 until 24).foreach { v =>
      val store = world.getStore(provider, v)
      equal(s"version $v", all(store), expected)
      put(store, ("n", v % 7) -> v, ("all", v) -> v)
      if (v % 3 == 2) store.remove(key("all", v - 1))
      world.commit(store)
      expected = expected ++ Map(("n", v % 7) -> v, ("all", v) -> v)
      if (v % 3 == 2) expected = expected - (("all", v - 1))
      if (v % 4 == 3) provider.doMaintenance()
    }
    equal("the last version", world.readAnew(24), expected)
  }
}
