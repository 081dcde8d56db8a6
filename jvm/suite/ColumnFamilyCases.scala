package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.spark.sql.execution.streaming.state._

import Checks._
import Rows._

/** Column families, lists of values and ranges of keys. */
object ColumnFamilyCases extends Cases {
  private def create(store: StateStore, family: String, lists: Boolean = false): Unit =
    store.createColFamilyIfAbsent(family, keySchema, valueSchema, plain, lists)

  private def ranged(store: StateStore): Unit =
    store.createColFamilyIfAbsent("ranged", moments, valueSchema, byRange)

  check("without_families_another_family_is_refused") { rig =>
    if (!rig.variant.families) {
      val store = rig.getStore(rig.provider(), 0)
      fails("creating a family")(create(store, "other"))
      fails("putting into a family")(store.put(key("a", 1), value(1), "other"))
      store.abort()
    }
  }

  check("families_keep_their_keys_apart", families) { rig =>
    val provider = rig.provider()
    val store = rig.getStore(provider, 0)
    create(store, "left")
    create(store, "right")
    put(store, ("a", 1) -> 1)
    store.put(key("a", 1), value(2), "left")
    store.put(key("b", 1), value(3), "right")
    equal("default", all(store), Map(("a", 1) -> 1): Pairs)
    equal("left", pairs(store.iterator("left")), Map(("a", 1) -> 2): Pairs)
    equal("names", store.allColumnFamilyNames, Set("default", "left", "right"))
    fails("a family nobody made")(store.get(key("a", 1), "nowhere"))
    fails("a reserved name")(create(store, "$internal"))
    fails("the default's name")(create(store, "default"))
    fails("an empty name")(create(store, ""))
    rig.commit(store)
    rig.settle()
    val anew = rig.getStore(rig.provider(), 1)
    Seq("left", "right").foreach(create(anew, _))
    equal("left anew", pairs(anew.iterator("left")), Map(("a", 1) -> 2): Pairs)
    equal("right anew", pairs(anew.iterator("right")), Map(("b", 1) -> 3): Pairs)
    anew.abort()
  }

  check("a_removed_family_is_gone_for_good", families) { rig =>
    val provider = rig.provider()
    val store = rig.getStore(provider, 0)
    create(store, "going")
    create(store, "staying")
    Seq("going", "staying").foreach(store.put(key("a", 1), value(1), _))
    rig.commit(store)
    val second = rig.getStore(provider, 1)
    holds("it was there")(second.removeColFamilyIfExists("going"))
    holds("it is not there twice")(!second.removeColFamilyIfExists("going"))
    fails("reading from it")(second.get(key("a", 1), "going"))
    rig.commit(second)
    rig.settle()
    val anew = rig.getStore(rig.provider(), 2)
    equal("names", anew.allColumnFamilyNames, Set("default", "staying"))
    create(anew, "going")
    create(anew, "staying")
    equal("a family made again is empty", pairs(anew.iterator("going")), Map.empty: Pairs)
    equal("the other", pairs(anew.iterator("staying")), Map(("a", 1) -> 1): Pairs)
    anew.abort()
  }

  check("a_family_made_by_a_commit_under_way_is_there_when_the_store_is_loaded_anew", families) {
    rig =>
      val provider = rig.provider(scheme = "faulty")
      rig.batch(provider, 0, ("a", 1) -> 1)
      rig.settle()
      val store = rig.getStore(provider, 1)
      create(store, "late")
      store.put(key("a", 1), value(2), "late")
      if (rig.variant.queue) rig.faults("faulty", "hang create")
      rig.commit(store)
      val loading = aside {
        val anew = rig.getStore(rig.provider(), 2)
        create(anew, "late")
        try pairs(anew.iterator("late"))
        finally anew.abort()
      }
      Thread.sleep(200)
      rig.faults("faulty")
      equal("the family", loading.join(), Map(("a", 1) -> 2): Pairs)
  }

  check("lists_of_values_grow_by_merging", families) { rig =>
    val provider = rig.provider()
    def list(store: StateStore, of: UnsafeRowKey): Seq[Int] =
      store.valuesIterator(key(of), "lists").map(_.getInt(0)).toList
    val store = rig.getStore(provider, 0)
    create(store, "lists", lists = true)
    store.merge(key("a", 1), value(1), "lists")
    store.merge(key("a", 1), value(2), "lists")
    store.putList(key("b", 1), Array(value(7), value(8)), "lists")
    store.mergeList(key("b", 1), Array(value(9), value(10)), "lists")
    equal("merged", list(store, ("a", 1)), Seq(1, 2))
    equal("put and merged", list(store, ("b", 1)), Seq(7, 8, 9, 10))
    equal("no list", list(store, ("c", 1)), Nil)
    fails("merging null")(store.merge(key("a", 1), null, "lists"))
    fails("merging into a single value")(store.merge(key("a", 1), value(1)))
    rig.commit(store)
    val second = rig.getStore(provider, 1)
    create(second, "lists", lists = true)
    second.merge(key("a", 1), value(3), "lists")
    second.remove(key("b", 1), "lists")
    rig.commit(second)
    rig.settle()
    val anew = rig.getStore(rig.provider(), 2)
    create(anew, "lists", lists = true)
    equal("merged anew", list(anew, ("a", 1)), Seq(1, 2, 3))
    equal("removed anew", list(anew, ("b", 1)), Nil)
    val rows = anew.iteratorWithMultiValues("lists")
    equal("all values", rows.map(_.value.getInt(0)).toList, List(1, 2, 3))
    anew.abort()
  }

  check("a_range_scan_is_in_order_and_half_open", families) { rig =>
    val provider = rig.provider()
    val moments = Seq(-5L, 0L, 3L, 70000L, Long.MaxValue, Long.MinValue)
    val store = rig.getStore(provider, 0)
    ranged(store)
    moments.zipWithIndex.foreach { case (at, n) => store.put(moment(at), value(n), "ranged") }
    def scan(in: StateStore, from: Option[Long], to: Option[Long]): Seq[Long] =
      in.rangeScan(from.map(moment), to.map(moment), "ranged").map(_.key.getLong(0)).toList
    equal("all", scan(store, None, None), moments.sorted)
    equal("a part", scan(store, Some(-5), Some(70000)), Seq(-5L, 0L, 3L))
    rig.commit(store)
    val second = rig.getStore(provider, 1)
    ranged(second)
    second.deleteRange(moment(0), moment(70000), "ranged")
    rig.commit(second)
    rig.settle()
    val anew = rig.getStore(rig.provider(), 2)
    ranged(anew)
    equal("what is left", scan(anew, None, Some(Long.MaxValue)), Seq(Long.MinValue, -5L, 70000L))
    fails("a scan of keys without an order")(anew.rangeScan(None, None))
    anew.abort()
  }

  private type UnsafeRowKey = (String, Int)
}
