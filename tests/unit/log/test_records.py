"""Generic records: tags, conditions, repeats, auxiliary data, and reading them as they come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import BadCall, PenstockError
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import AppendRecord, Operation, SetAux, TrimTag
from penstock.log.reading.subscription import ENTRIES_MAX
from penstock.log.rules import RECORD_WINDOW
from penstock.log.store import repair
from penstock.model.ids import Instance, Lsn
from penstock.settings.server import Settings
from support.log.drafts import draft, make, rows


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(
        tmp_path / "data",
        Settings(entry_bytes_max=1 << 20, producers_max=3, producer_kept_ms_min=0),
    )
    yield log
    log.close()


def record(*tags: str, payload: bytes = b"x", **more: object) -> AppendRecord:
    return AppendRecord(tags, payload, **more)  # type: ignore[arg-type]


def code(log: EmbeddedLog, operation: Operation) -> str:
    with pytest.raises(PenstockError) as caught:
        log.run(operation)
    return caught.value.code


def test_a_record_is_found_under_each_of_its_tags(log: EmbeddedLog) -> None:
    first, second = log.run(record("a", "b")), log.run(record("b", payload=b"y"))
    with log.reading() as view:
        assert list(view.tagged("a")) == [first]
        assert list(view.tagged("b")) == [first, second]
        assert list(view.tagged("b", second)) == [second]
        assert (view.tail("a"), view.tail("b"), view.tail("c")) == (first, second, None)
        entry = view.entry(second)
        assert entry is not None
        assert (entry.head.kind, entry.payload) == ("record", b"y")
    invariants.check(log)


def test_the_tail_of_a_tag_is_not_that_of_its_neighbours(log: EmbeddedLog) -> None:
    log.run(record("a"))
    last = log.run(record("a1"))
    log.run(record("b"))
    with log.reading() as view:
        assert view.tail("a1") == last
        assert view.tail("a2") is None


def test_an_append_that_expects_another_tail_is_a_conflict(log: EmbeddedLog) -> None:
    first = log.run(record("a", expect=("a", 0)))
    assert code(log, record("a", expect=("a", 0))) == "conflict"
    second = log.run(record("a", "b", expect=("a", first)))
    assert code(log, record("b", expect=("a", first))) == "conflict"
    assert log.run(record("b", expect=("a", second))) == second + 1


def test_of_two_that_expect_the_same_tail_one_is_refused(log: EmbeddedLog) -> None:
    futures = [log.submit(record("a", expect=("a", 0))) for _ in range(2)]
    refused = [future.exception(10) for future in futures]
    assert [type(each) for each in refused] == [type(None), BadCall]


def test_a_repeat_is_answered_with_the_first_place(log: EmbeddedLog) -> None:
    places = [log.run(record("a", producer="p", seq=seq)) for seq in (0, 2, 1)]
    assert [log.run(record("a", producer="p", seq=seq)) for seq in (0, 2, 1)] == places
    with log.reading() as view:
        assert list(view.tagged("a")) == places


def test_a_repeat_is_answered_also_when_what_it_expected_is_no_longer_so(log: EmbeddedLog) -> None:
    once = record("a", producer="p", seq=0, expect=("a", Lsn(0)))
    assert log.run(once) == log.run(once)


def test_a_new_instance_counts_anew_and_an_old_one_is_still_filtered(log: EmbeddedLog) -> None:
    of_old_instance = log.run(record("a", producer="p", instance=Instance(1), seq=0))
    of_new_instance = log.run(record("a", producer="p", instance=Instance(2), seq=0))
    assert of_old_instance != of_new_instance
    assert log.run(record("a", producer="p", instance=Instance(1), seq=0)) == of_old_instance


def test_a_sequence_below_the_window_is_refused_and_its_memory_is_bounded(log: EmbeddedLog) -> None:
    for seq in range(10):
        log.run(record("a", producer="p", seq=seq))
    log.run(record("a", producer="p", seq=5 + RECORD_WINDOW))
    assert code(log, record("a", producer="p", seq=5)) == "sequence_too_old"
    assert log.run(record("a", producer="p", seq=6)) == 7
    with log.reading() as view:
        assert view.txn.stat(view.tables["record_seqs"])["entries"] == 5


def test_the_producer_unused_longest_is_forgotten_as_a_whole(log: EmbeddedLog) -> None:
    for seq in range(5):
        log.run(record("a", producer="oldest", seq=seq))
    for producer in ("b", "c", "d"):
        log.run(record("a", producer=producer, seq=0))
    with log.reading() as view:
        assert view.last_recorded("oldest") is None
        assert view.txn.stat(view.tables["record_seqs"])["entries"] == 3
    assert log.run(record("a", producer="b", seq=0)) == 6


def test_a_record_over_the_bound_is_refused_with_both_sizes(log: EmbeddedLog) -> None:
    with pytest.raises(BadCall, match=r"1048577 bytes.* at most 1048576"):
        log.run(record("a", payload=bytes((1 << 20) + 1)))


def test_auxiliary_data_is_replaced_and_outlives_a_restart(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path / "data")
    lsn = log.run(record("a"))
    assert log.run(SetAux(lsn, b"one")) == lsn
    log.run(SetAux(lsn, b"two"))
    assert code(log, SetAux(Lsn(lsn + 1), b"x")) == "unknown_entries"
    log.close()
    again = EmbeddedLog.open(tmp_path / "data")
    with again.reading() as view:
        assert view.aux(lsn) == b"two"
        assert view.aux(Lsn(lsn + 1)) is None
    again.close()


def test_a_cut_forgets_the_sequences_of_what_it_removed(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path / "cut")
    places = [log.run(record("a", producer="p", seq=seq)) for seq in range(4)]
    log.run(record("a", producer="gone", seq=0))
    log.run(SetAux(places[3], b"x"))
    cut = repair.cut_from(log._env, log._tables, places[2], SYSTEM_CLOCK)
    assert cut.entries == 3
    assert log.run(record("a", producer="p", seq=1)) == places[1]
    assert log.run(record("a", producer="p", seq=2)) == 6
    assert log.run(record("a", producer="gone", seq=0)) == 7
    with log.reading() as view:
        assert view.aux(places[3]) is None
    invariants.check(log)
    log.close()


def test_a_subscription_gives_each_entry_once_in_order(log: EmbeddedLog) -> None:
    before = log.run(record("a"))
    with log.subscribe(("a", "b"), after=before) as reader:
        assert reader.next(0) == []
        lsns = [log.run(record(*tags)) for tags in (("a",), ("c",), ("a", "b"), ("b",))]
        assert [entry.head.lsn for entry in reader.next(1)] == [lsns[0], *lsns[2:]]
        assert reader.next(0) == []


def test_a_subscription_reads_what_streams_hold_too(log: EmbeddedLog) -> None:
    log.run(make())
    log.run(rows(draft(0, 1), draft(1, 2)))
    with log.subscribe(["s/s/0", "s/s/1"]) as reader:
        assert [entry.head.tags for entry in reader.next(0)] == [("s/s/0",), ("s/s/1",)]


def test_a_subscription_waits_until_the_writer_wakes_it(log: EmbeddedLog) -> None:
    lsns_read: list[Lsn] = []
    with log.subscribe(["a"]) as reader:
        waiting = threading.Thread(
            target=lambda: lsns_read.extend(entry.head.lsn for entry in reader.next(30))
        )
        waiting.start()
        log.run(record("b"))
        lsn = log.run(record("a"))
        waiting.join(20)
    assert lsns_read == [lsn]


def test_a_subscription_gives_much_in_bounded_parts(log: EmbeddedLog) -> None:
    futures = [log.submit(record(f"tag-{each % 7}")) for each in range(2 * ENTRIES_MAX + 1)]
    lsns = [future.result(20) for future in futures]
    with log.subscribe([f"tag-{each}" for each in range(7)]) as reader:
        parts = [reader.next(0) for _ in range(4)]
    assert [len(part) for part in parts] == [ENTRIES_MAX, ENTRIES_MAX, 1, 0]
    assert [entry.head.lsn for part in parts for entry in part] == lsns


def test_a_subscription_that_was_overtaken_by_a_trim_says_so_and_one_that_was_not_goes_on(
    log: EmbeddedLog,
) -> None:
    first, second = log.run(record("a")), log.run(record("a"))
    slow, quick = log.subscribe(["a"]), log.subscribe(["a"])
    assert len(quick.next(0)) == 2
    log.run(record("b"))
    log.run(TrimTag("a", Lsn(second + 1)))
    third = log.run(record("a"))
    assert [entry.head.lsn for entry in quick.next(1)] == [third]
    with pytest.raises(BadCall, match=f"trimmed up to {second}, and entries after 0 were asked"):
        slow.next(0)
    with log.subscribe(["a"], after=second) as late:
        assert len(late.next(0)) == 1
    with log.reading() as view:
        assert view.entry(first) is None


def test_the_tail_of_a_tag_outlives_its_records(log: EmbeddedLog) -> None:
    last = log.run(record("a"))
    log.run(TrimTag("a", last))
    assert code(log, record("a", expect=("a", Lsn(0)))) == "conflict"
    assert log.run(record("a", expect=("a", last))) > last
    invariants.check(log)
