package org.apache.spark.sql.execution.streaming.state.contract

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._

import Checks._
import Rows._

/** What a store does with keys and values, from its load to its commit or abort. */
object StoreCases extends Cases {

  check("what_is_put_is_read_back_here_and_in_a_new_provider") { rig =>
    val provider = rig.provider()
    val store = rig.getStore(provider, 0)
    holds("a new store is empty")(all(store).isEmpty)
    equal("a key that is not there", number(store.get(key("a", 1))), None)
    put(store, ("a", 1) -> 1, ("b", 2) -> 2, ("c", 3) -> 3)
    put(store, ("a", 1) -> 10)
    store.remove(key("b", 2))
    store.remove(key("nobody", 0))
    equal("a value put twice", number(store.get(key("a", 1))), Some(10))
    equal("a removed value", number(store.get(key("b", 2))), None)
    val expected: Pairs = Map(("a", 1) -> 10, ("c", 3) -> 3)
    equal("the iterator", all(store), expected)
    equal("the version", rig.commit(store), 1L)
    holds("it counts as committed")(store.hasCommitted)
    fails("a put after the commit")(put(store, ("d", 4) -> 4))
    fails("a remove after the commit")(store.remove(key("a", 1)))
    fails("a second commit")(store.commit())
    equal("version 1", rig.read(provider, 1), expected)
    equal("version 1 in a new provider", rig.readAnew(1), expected)
  }

  check("versions_follow_one_another_and_older_ones_stay") { rig =>
    val provider = rig.provider()
    (0 until 8).foreach { v =>
      equal("the next version", rig.batch(provider, v, ("n", v) -> v, ("last", 0) -> v), v + 1L)
    }
    def expected(version: Int): Pairs =
      (0 until version).map(v => ("n", v) -> v).toMap + (("last", 0) -> (version - 1))
    equal("version 8", rig.read(provider, 8), expected(8))
    rig.settle()
    val other = rig.provider()
    Seq(8, 5, 1, 7).foreach(v => equal(s"version $v", rig.read(other, v), expected(v)))
  }

  check("an_empty_batch_makes_a_version_too") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0)
    rig.batch(provider, 1, ("a", 1) -> 1)
    rig.batch(provider, 2)
    equal("version 1", rig.readAnew(1), Map.empty: Pairs)
    equal("version 3", rig.readAnew(3), Map(("a", 1) -> 1): Pairs)
  }

  check("an_aborted_batch_leaves_nothing_behind") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    val store = rig.getStore(provider, 1)
    put(store, ("a", 1) -> 99, ("b", 2) -> 99)
    store.abort()
    store.abort()
    fails("a put after the abort")(put(store, ("d", 4) -> 4))
    fails("a commit after the abort")(store.commit())
    holds("an aborted store has not committed")(!store.hasCommitted)
    equal("version 1", rig.read(provider, 1), Map(("a", 1) -> 1): Pairs)
    rig.batch(provider, 1, ("c", 3) -> 3)
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 1, ("c", 3) -> 3): Pairs)
  }

  check("a_batch_is_run_again_on_the_version_before") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1)
    rig.begin(1)
    val first = rig.getStore(provider, 1)
    put(first, ("a", 1) -> 2, ("only", 0) -> 2)
    first.commit()
    val again = rig.getStore(provider, 1)
    equal("what the second attempt begins with", all(again), Map(("a", 1) -> 1): Pairs)
    put(again, ("a", 1) -> 3)
    rig.commit(again)
    rig.batch(provider, 2, ("b", 2) -> 2)
    equal("version 2", rig.readAnew(2), Map(("a", 1) -> 3): Pairs)
    equal("version 3", rig.readAnew(3), Map(("a", 1) -> 3, ("b", 2) -> 2): Pairs)
  }

  check("a_null_value_is_refused") { rig =>
    val store = rig.getStore(rig.provider(), 0)
    fails("putting null", "null")(store.put(key("a", 1), null))
    fails("putting under null")(store.put(null, value(1)))
    store.abort()
  }

  check("several_keys_are_read_at_once") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1, ("b", 2) -> 2)
    val store = rig.getStore(provider, 1)
    put(store, ("c", 3) -> 3)
    store.remove(key("b", 2))
    val keys = Array(key("a", 1), key("b", 2), key("c", 3), key("a", 1), key("z", 0))
    val got = store.multiGet(keys, StateStore.DEFAULT_COL_FAMILY_NAME).map(number).toSeq
    equal("the values in the order of the keys", got, Seq(Some(1), None, Some(3), Some(1), None))
    holds("a key is there")(store.keyExists(key("c", 3)))
    holds("a removed key is not there")(!store.keyExists(key("b", 2)))
    store.abort()
  }

  check("keys_may_be_removed_while_iterating") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, (0 until 50).map(n => ("k", n) -> n): _*)
    val store = rig.getStore(provider, 1)
    val rows = store.iterator()
    rows.map(row => pair(row.key)).foreach { seen =>
      if (seen._2 % 2 == 0) store.remove(key(seen))
    }
    rows.close()
    val odd: Pairs = (1 until 50 by 2).map(n => ("k", n) -> n).toMap
    equal("what is left", all(store), odd)
    rig.commit(store)
    equal("version 2", rig.readAnew(2), odd)
  }

  check("an_iterator_shows_what_was_put_before_it") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, ("a", 1) -> 1, ("b", 2) -> 2)
    val store = rig.getStore(provider, 1)
    put(store, ("c", 3) -> 3, ("a", 1) -> 11)
    val rows = store.iterator()
    put(store, ("a", 1) -> 12)
    val seen = pairs(rows)
    equal("the keys", seen.keySet, Set(("a", 1), ("b", 2), ("c", 3)))
    holds("the value is one that was there")(Set(11, 12)(seen(("a", 1))))
    rig.commit(store)
    equal("version 2", rig.readAnew(2)(("a", 1)), 12)
  }

  check("an_iterator_that_is_left_early_can_be_closed") { rig =>
    val provider = rig.provider()
    rig.batch(provider, 0, (0 until 20).map(n => ("k", n) -> n): _*)
    val store = rig.getStore(provider, 1)
    val rows = store.iterator()
    rows.next()
    rows.close()
    rows.close()
    put(store, ("k", 0) -> 100)
    rig.commit(store)
    equal("version 2", rig.readAnew(2)(("k", 0)), 100)
  }

  check("a_prefix_scan_gives_all_keys_of_a_prefix_and_no_other") { rig =>
    val provider = rig.provider(keys = byPrefix)
    def scan(store: ReadStateStore, name: String): Pairs = pairs(store.prefixScan(prefix(name)))
    val store = rig.getStore(provider, 0)
    put(store, ("a", 1) -> 1, ("a", 2) -> 2, ("ab", 1) -> 3, ("b", 1) -> 4)
    equal("prefix a", scan(store, "a"), Map(("a", 1) -> 1, ("a", 2) -> 2): Pairs)
    equal("no such prefix", scan(store, "z"), Map.empty: Pairs)
    rig.commit(store)
    val aborted = rig.getStore(provider, 1)
    put(aborted, ("a", 3) -> 99)
    aborted.remove(key("a", 1))
    equal("prefix a before the abort", scan(aborted, "a").keySet, Set(("a", 2), ("a", 3)))
    aborted.abort()
    val after = rig.getStore(provider, 1)
    equal("prefix a after the abort", scan(after, "a"), Map(("a", 1) -> 1, ("a", 2) -> 2): Pairs)
    after.remove(key("a", 2))
    rig.commit(after)
    rig.settle()
    val read = rig.getReadStore(rig.provider(keys = byPrefix), 2)
    equal("prefix a anew", scan(read, "a"), Map(("a", 1) -> 1): Pairs)
    equal("prefix ab anew", scan(read, "ab"), Map(("ab", 1) -> 3): Pairs)
    read.release()
  }

  check("a_prefix_scan_needs_a_prefix", rocksDB) { rig =>
    val store = rig.getStore(rig.provider(), 0)
    fails("a scan without a prefix", "prefix")(store.prefixScan(prefix("a")))
    store.abort()
  }

  check("rows_of_another_format_are_noticed", v => Option.when(v.families)("not checked with families")) {
    rig =>
      rig.batch(rig.provider(), 0, ("a", 1) -> 1)
      rig.settle()
      val longer = new StructType().add("x", LongType).add("y", LongType).add("z", StringType)
      val other = rig.provider(keys = NoPrefixKeyStateEncoderSpec(longer))
      fails("reading with another schema", "alid") {
        val store = rig.getReadStore(other, 1)
        try store.iterator().foreach(_ => ())
        finally store.release()
      }
  }
}
