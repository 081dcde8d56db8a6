"""What both backends promise, case by case: two clients of one log, on each."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from penstock.errors import BadCall, Fenced, PenstockError
from penstock.log.backends.local import LocalLog
from penstock.log.decide.records import AUX_BYTES_MAX, TAGS_MAX
from penstock.log.operations import AppendRecord, Operation, SetAux, TrimStream, TrimTag
from penstock.log.reading.visible import Range, entries_in, latest
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName
from support.log.backends import Backend
from support.log.drafts import draft, files, make, mark, pending, rows, take, values_of


def record(*tags: str, payload: bytes = b"x", **more: Any) -> AppendRecord:
    return AppendRecord(tags, payload, **more)


def refused(log: LocalLog, operation: Operation) -> str:
    with pytest.raises(PenstockError) as caught:
        log.run(operation)
    return caught.value.code


def read(log: LocalLog, stream: str = "s", after: int = 0) -> list[int]:
    with log.reading() as view:
        record = view.stream(StreamName(stream))
        assert record is not None
        asked = Range(record, Lsn(after), latest(view, record))
        return [v for _, lsn in entries_in(view, asked) for v in values_of(view.payload(lsn))]


def test_rows_of_one_client_are_read_by_the_other(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    first_log.run(make())
    first_log.run(rows(draft(0, 1), draft(1, 2)))
    backend.settle()
    other.run(rows(draft(1, 3)))
    backend.settle()
    assert read(first_log) == read(other) == [1, 2, 3]
    backend.check()


def test_what_was_answered_is_read_by_who_was_answered(first_log: LocalLog) -> None:
    first_log.run(make())
    for value in range(20):
        first_log.run(rows(draft(value % 2, value)))
        assert sorted(read(first_log)) == list(range(value + 1))


def test_pending_entries_show_with_their_marker_only(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    first_log.run(make())
    first_log.run(take())
    backend.settle()
    entries = (*other.run(pending(draft(0, 1), draft(1, 2))), *first_log.run(pending(draft(0, 3))))
    backend.settle()
    assert read(first_log) == read(other) == []
    position = other.run(mark(*entries))
    backend.settle()
    assert sorted(read(first_log)) == [1, 2, 3]
    with first_log.reading() as view:
        assert view.tail("t/q") == position
    backend.check()


def test_the_fence_holds_across_clients(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    first_log.run(make())
    assert first_log.run(take(run="first")).instance == 1
    entries = first_log.run(pending(draft(0, 1)))
    assert other.run(take(run="second")).instance == 2
    with pytest.raises(Fenced, match="its instance is 2"):
        first_log.run(mark(*entries))
    with pytest.raises(Fenced):
        first_log.run(pending(draft(0, 2)))
    with pytest.raises(Fenced):
        first_log.run(take(run="first"))
    assert other.run(take(run="second")).instance == 2
    backend.check()


def test_of_two_that_take_a_query_over_at_once_each_gets_its_own_instance(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    futures = [log.submit(take(run=f"{n}")) for n in range(5) for log in (first_log, other)]
    taken = [future.exception(20) or future.result() for future in futures]
    instances = [each.instance for each in taken if not isinstance(each, BaseException)]
    backend.check()
    # The two clients send the same run ids: whichever comes second either holds the query still
    # and gets the same instance, or has been taken over and is fenced.
    assert set(instances) == set(range(1, 6))
    assert all(isinstance(each, Fenced) for each in taken if isinstance(each, BaseException))


def test_a_marker_sent_at_once_with_a_take_over_counts_only_if_it_comes_before_it_in_the_log(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    first_log.run(make())
    last_marked = None
    for batch in range(10):
        instance = first_log.run(take(run=f"one-{batch}")).instance
        backend.settle()
        marking = first_log.submit(mark(instance=instance, batch=batch))
        taking = other.submit(take(run=f"other-{batch}"))
        taken, error = taking.result(20), marking.exception(20)
        assert taken.instance == instance + 1
        backend.settle()
        with other.reading() as view:
            marked_at = view.marked(QueryId("q"), BatchId(batch))
            task_log = list(view.tagged("t/q"))
        if error is None:
            assert marked_at == marking.result() == task_log[-2], "before the take-over"
            assert (taken.marker.lsn, taken.marker.batch) == (marked_at, batch)
        else:
            assert isinstance(error, Fenced)
            assert marked_at is None
            assert taken.marker == last_marked, "the new instance knows of no marker of the old one"
        # From the take-over on the old instance marks nothing, not even what it has marked.
        with pytest.raises(Fenced):
            first_log.run(mark(instance=instance, batch=batch))
        if error is not None:
            other.run(mark(instance=instance + 1, batch=batch))
            backend.settle()
        with other.reading() as view:
            record = view.query(QueryId("q"))
            assert record is not None
            last_marked = record.marker
            assert last_marked is not None
            assert last_marked.batch == batch
    backend.check()


def test_a_repeat_sent_to_the_other_client_is_filtered(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    first_log.run(make())
    first = first_log.run(rows(draft(0, 1), draft(1, 2), producer="p", sequence=7))
    again = other.run(rows(draft(0, 1), draft(1, 2), producer="p", sequence=7))
    assert (again.duplicate, again.position, again.entries) == (True, first.position, first.entries)
    lsn = first_log.run(record("a", producer="p", seq=3))
    assert other.run(record("a", producer="p", seq=3)) == lsn
    backend.settle()
    assert read(other) == [1, 2]
    backend.check()


def test_many_of_one_producer_under_way_at_once_are_all_kept(
    backend: Backend, first_log: LocalLog
) -> None:
    first_log.run(make())
    futures = [first_log.submit(rows(draft(0, n), producer="p", sequence=n)) for n in range(200)]
    assert not any(future.result(60).duplicate for future in futures)
    assert read(first_log) == list(range(200))


def test_what_was_submitted_takes_place_and_is_answered_though_its_caller_has_gone(
    backend: Backend, first_log: LocalLog
) -> None:
    futures = [first_log.submit(record("a")) for _ in range(50)]
    assert not any(future.cancel() for future in futures)
    lsns = sorted(future.result(60) for future in futures)
    with first_log.reading() as view:
        assert list(view.tagged("a")) == lsns


def test_conditional_appends_of_two_clients_make_one_chain(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    def extend(log: LocalLog, won: list[Lsn]) -> None:
        while len(won) < 15:
            with log.reading() as view:
                tail = view.tail("chain") or Lsn(0)
            try:
                won.append(log.run(record("chain", payload=b"%d" % tail, expect=("chain", tail))))
            except BadCall as error:
                if error.code != "conflict":
                    raise

    won: tuple[list[Lsn], list[Lsn]] = ([], [])
    threads = [
        threading.Thread(target=extend, args=pair)
        for pair in zip((first_log, other), won, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    backend.settle()
    with first_log.reading() as view:
        chain = list(view.tagged("chain"))
        expected = [int(view.payload(lsn)) for lsn in chain]
    assert chain == sorted((*won[0], *won[1]))
    assert expected == [0, *chain[:-1]]
    backend.check()


def test_files_are_kept_and_named_by_a_marker(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    first_log.run(take())
    backend.settle()
    offsets, state = other.run(files("offsets/0", "state/1.changelog"))
    first_log.run(mark(files={"offsets/0": offsets, "state/1.changelog": state}))
    backend.settle()
    with other.reading() as view:
        assert bytes(view.payload(state)) == b"state/1.changelog"
    backend.check()


def test_auxiliary_data_reaches_every_client(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    lsn = first_log.run(record("a"))
    other.run(SetAux(lsn, b"snapshot-1"))
    backend.settle()
    with first_log.reading() as view:
        assert view.aux(lsn) == b"snapshot-1"
    assert refused(first_log, SetAux(Lsn(lsn + 1_000), b"")) == "unknown_entries"
    assert refused(first_log, SetAux(lsn, bytes(AUX_BYTES_MAX + 1))) == "entry_too_large"
    other.run(SetAux(lsn, bytes(AUX_BYTES_MAX)))
    backend.settle()
    with first_log.reading() as view:
        assert view.aux(lsn) == bytes(AUX_BYTES_MAX)
    backend.check()


def test_a_subscription_gets_what_any_client_appends_once_and_in_order(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    futures: list[Future[Lsn]] = []
    with first_log.subscribe(["a", "b"]) as reader:
        for number in range(60):
            log = (first_log, other)[number % 2]
            futures.append(log.submit(record(("a", "b", "c")[number % 3])))
        lsns = sorted(f.result(20) for n, f in enumerate(futures) if n % 3 != 2)
        lsns_read: list[Lsn] = []
        while len(lsns_read) < len(lsns):
            got = reader.next(10)
            assert got
            lsns_read += [entry.head.lsn for entry in got]
        assert lsns_read == lsns
        assert reader.next(0.05) == []


def test_a_subscription_misses_no_entry_of_an_operation_with_several(
    backend: Backend, first_log: LocalLog, other: LocalLog
) -> None:
    """Their places are taken one by one, and they come all at once."""
    first_log.run(make())
    backend.settle()
    with first_log.subscribe(["s/s/0", "s/s/1"]) as reader:
        futures = [
            log.submit(rows(draft(0, n), draft(1, n), draft(0, -n)))
            for n in range(40)
            for log in (first_log, other)
        ]
        lsns = sorted(lsn for future in futures for lsn in future.result(60).entries)
        lsns_read: list[Lsn] = []
        while len(lsns_read) < len(lsns):
            got = reader.next(10)
            assert got
            lsns_read += [entry.head.lsn for entry in got]
    assert lsns_read == lsns
    backend.check()


@pytest.mark.parametrize("again", ["reopen", "rebuild"])
def test_a_server_that_comes_back_has_everything(
    backend: Backend, first_log: LocalLog, again: str
) -> None:
    first_log.run(make())
    first_log.run(take())
    first_log.run(rows(draft(0, 1), draft(1, 2), producer="p", sequence=1))
    entries = first_log.run(pending(draft(0, 3), draft(1, 4)))
    first_log.run(mark(*entries))
    first_log.run(SetAux(first_log.run(record("a", producer="p", seq=1)), b"aux"))
    getattr(backend, again)(0)
    first_log = backend.clients[0]
    assert sorted(read(first_log)) == [1, 2, 3, 4]
    assert first_log.run(rows(draft(0, 1), draft(1, 2), producer="p", sequence=1)).duplicate
    assert first_log.run(take()).marker is not None
    backend.check()


def test_what_was_trimmed_and_purged_is_not_needed_to_come_back(
    backend: Backend, first_log: LocalLog
) -> None:
    first_log.run(make())
    for n in range(20):
        last = first_log.run(rows(draft(0, n), draft(1, n), producer="p", sequence=n))
    kept = [first_log.run(record("a", "b")) for _ in range(3)]
    first_log.run(record("a", payload=b""))
    first_log.run(take())
    entries = first_log.run(pending(draft(0, 5), draft(1, 6)))
    first_log.run(TrimStream(StreamName("s"), last.position, 0))
    first_log.run(TrimTag("a", kept[-1]))
    backend.purge(0)
    backend.rebuild(1)
    backend.check()
    other = backend.clients[1]
    assert other.run(rows(draft(0, 19), draft(1, 19), producer="p", sequence=19)).duplicate
    other.run(mark(*entries))
    assert sorted(read(other, after=last.position)) == [5, 6]
    with other.reading() as view:
        assert list(view.tagged("b")) == kept
    backend.purge(1)
    backend.rebuild(0)
    backend.check()


def test_an_entry_over_the_bound_is_refused_and_leaves_no_trace(
    backend: Backend, first_log: LocalLog
) -> None:
    bound = first_log.settings.entry_bytes_max
    assert refused(first_log, record("a", payload=bytes(bound + 1))) == "entry_too_large"
    assert first_log.run(record("a", payload=bytes(bound))) > 0
    backend.check()


@pytest.mark.parametrize(
    "wrong",
    [
        record(),
        record(""),
        record("a\x00"),
        record("a" * 201),
        record("s/x/0"),
        record("t/query"),
        record(*(str(each) for each in range(TAGS_MAX + 1))),
        record("a", producer="\x01"),
    ],
    ids=["none", "empty", "control", "long", "stream's", "query's", "many", "producer"],
)
def test_a_tag_over_the_bound_or_of_the_log_itself_is_refused(
    first_log: LocalLog, wrong: AppendRecord
) -> None:
    assert refused(first_log, wrong) == "bad_tag"
    with first_log.reading() as view:
        assert view.next_lsn == 1


def test_a_record_has_as_many_tags_as_it_may(backend: Backend, first_log: LocalLog) -> None:
    tags = [str(each) for each in range(TAGS_MAX)]
    lsn = first_log.run(record(*tags))
    backend.settle()
    for log in backend.clients:
        with log.reading() as view:
            assert {view.tail(tag) for tag in tags} == {lsn}
    backend.check()


def test_refusals_are_the_same_sentence_on_both(backend: Backend, other: LocalLog) -> None:
    with pytest.raises(BadCall, match="there is no stream 'nowhere'; make it first"):
        other.run(rows(draft(0, 1), stream="nowhere"))
    with pytest.raises(BadCall, match="there is no query 'q'; take it over first"):
        other.run(mark())
    backend.check()


def test_a_marker_shows_what_may_have_been_answered_before_its_sync(
    backend: Backend, first_log: LocalLog
) -> None:
    first_log.run(make())
    first_log.run(take())
    asked: list[Operation] = [pending(draft(0, 1)), files("state/0/0/1.changelog")]
    given = [future.result(60) for future in first_log.submit_early(asked)]
    starts = {each.start for each in given}
    assert len(starts) == 1
    (entry,), (file,) = (each.answer for each in given)
    named = {int(start): file for start in starts if start is not None}
    first_log.run(mark(entry, files={"state/0/0/1.changelog": file}, starts=named))
    backend.settle()
    assert read(first_log) == [1]
    unheard = mark(batch=1, starts={1: file})
    assert refused(first_log, unheard) == "other_start"
    backend.check()
