package org.apache.spark.sql.execution.streaming.state.contract

import Checks._
import Rows._

/** Which versions can be had, and by how many at a time; snapshots and maintenance. */
object VersionCases extends Cases {

  check("a_version_that_does_not_exist_is_an_error") { rig =>
    val provider = rig.provider()
    fails("version -1")(rig.getStore(provider, -1))
    fails("reading version -1")(rig.getReadStore(provider, -1))
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    if (rig.variant.format == 1) {
      fails("a version of the future")(rig.getStore(provider, 2))
      fails("reading one far ahead")(rig.getReadStore(provider, 7))
    } else {
      val nobody = Some("00000000-0000-0000-0000-000000000000")
      fails("a version of the future")(provider.getStore(2, nobody))
      fails("an id that nobody wrote")(provider.getStore(1, nobody))
    }
    rig.batch(provider, 1, ("b", 2) -> 2)
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_gap_is_an_error_and_never_an_older_state") { rig =>
    val provider = rig.provider(minDeltas = 100)
    (0 until 3).foreach(v => rig.batch(provider, v, ("n", v) -> v))
    rig.settle()
    rig.deleteVersion(2)
    val other = rig.provider(minDeltas = 100)
    fails("the version that is gone")(rig.read(other, 2))
    if (rig.variant.changelog || !rig.variant.isRocksDB) {
      fails("the version built on it")(rig.read(other, 3))
    }
    if (!rig.variant.families) equal("version 1", rig.read(other, 1), Map(("n", 0) -> 0): Pairs)
  }

  check("a_reader_and_a_writer_share_a_version") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    val reader = rig.getReadStore(provider, 1)
    val writer =
      if (rig.variant.isRocksDB) rig.upgrade(provider, reader)
      else rig.getStore(provider, 1)
    equal("what the writer sees", all(writer), Map(("a", 1) -> 1): Pairs)
    put(writer, ("b", 2) -> 2)
    equal("the version", rig.commit(writer), 2L)
    if (!rig.variant.isRocksDB) equal("the reader", all(reader), Map(("a", 1) -> 1): Pairs)
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_released_reader_makes_room_for_a_writer") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    val reader = rig.getReadStore(provider, 1)
    if (rig.variant.isRocksDB) {
      fails("a writer while another has the store", "UNRELEASED_THREAD")(rig.getStore(provider, 1))
    }
    reader.release()
    reader.release()
    rig.batch(provider, 1, ("b", 2) -> 2)
    equal("version 2", rig.read(provider, 2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_reader_becomes_the_writer_and_can_abort", rocksDB) { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    val reader = rig.getReadStore(provider, 1)
    fails("another version")(provider.upgradeReadStoreToWriteStore(reader, 2))
    val writer = rig.upgrade(provider, reader)
    holds("it is the same store")(writer eq reader)
    put(writer, ("a", 1) -> 99)
    writer.abort()
    rig.batch(provider, 1, ("b", 2) -> 2)
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_closed_provider_takes_what_it_was_given_with_it") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.batch(provider, 1, ("b", 2) -> 2)
    provider.close()
    provider.close()
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("a_forced_snapshot_is_made_and_counted") { rig =>
    val provider = rig.provider(minDeltas = 100)
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.settle()
    val store = rig.getStore(provider, 1, force = true)
    put(store, ("b", 2) -> 2)
    rig.commit(store)
    val counted = store.metrics.customMetrics.collect {
      case (metric, count) if metric.name.contains("orceSnapshotCount") => count
    }
    equal("the metric", counted.toSeq, Seq(1L))
    rig.settle()
    val ending = if (rig.variant.isRocksDB) ".zip" else ".snapshot"
    holds(s"there is a snapshot of version 2 in ${rig.files()}")(rig.hasVersion(2, ending))
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("b", 2) -> 2): Pairs)
  }

  check("maintenance_makes_snapshots_that_can_be_loaded") { rig =>
    val provider = rig.provider()
    (0 until 5).foreach { v =>
      rig.batch(provider, v, ("n", v) -> v)
      rig.settle()
      provider.doMaintenance()
    }
    if (rig.variant.changelog) {
      holds(s"a snapshot is there: ${rig.files()}")(rig.files().exists(_.endsWith(".zip")))
    }
    equal("version 5", rig.readAnew(5).size, 5)
    equal("version 4", rig.readAnew(4).size, 4)
  }

  check("maintenance_that_fails_harms_nobody") { rig =>
    val provider = rig.provider(scheme = "faulty")
    (0 until 4).foreach(v => rig.batch(provider, v, ("n", v) -> v))
    rig.settle()
    rig.faults("faulty", "fail list", "fail create", "fail rename", "fail delete")
    provider.doMaintenance()
    rig.faults("faulty")
    rig.batch(provider, 4, ("n", 4) -> 4)
    provider.doMaintenance()
    equal("version 5", rig.readAnew(5).size, 5)
  }

  check("a_long_run_with_maintenance_beside_it_stays_right") { rig =>
    val provider = rig.provider()
    var expected: Pairs = Map.empty
    (0 until 24).foreach { v =>
      val store = rig.getStore(provider, v)
      equal(s"version $v", all(store), expected)
      put(store, ("n", v % 7) -> v, ("all", v) -> v)
      if (v % 3 == 2) store.remove(key("all", v - 1))
      rig.commit(store)
      expected = expected ++ Map(("n", v % 7) -> v, ("all", v) -> v)
      if (v % 3 == 2) expected = expected - (("all", v - 1))
      if (v % 4 == 3) provider.doMaintenance()
    }
    equal("the last version", rig.readAnew(24), expected)
  }
}
