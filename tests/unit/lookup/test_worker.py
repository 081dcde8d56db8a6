"""Record batches through a worker: columns, nulls, drops and errors, and what is counted."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from penstock.errors import BadCall, TryAgain
from penstock.lookup import worker
from penstock.lookup.columns import check_key_type, check_time_type, keyed
from penstock.lookup.counts import LookupCounts
from penstock.lookup.worker import Enrichment, TaskPlace, enrich_batches
from support.lookup_stores import HeldStore

_ids = count()


@pytest.fixture
def store() -> HeldStore:
    return HeldStore(absent=["gone"])


@pytest.fixture
def spec(store: HeldStore) -> Iterator[Enrichment]:
    made = Enrichment(f"test {next(_ids)}", store, "key", retries=0)
    yield made
    for each in [name for name in worker._LOOKUPS if name.startswith(made.id)]:
        worker._LOOKUPS.pop(each).close()


def batch(*keys: str | None) -> pa.RecordBatch:
    return pa.record_batch({"n": list(range(len(keys))), "key": pa.array(keys, pa.string())})


def run(
    spec: Enrichment, *batches: pa.RecordBatch, micro_batch: int | None = None
) -> tuple[list[dict[str, object]], LookupCounts]:
    counts: list[LookupCounts] = []
    place = TaskPlace("query", micro_batch)
    enriched = list(enrich_batches(spec, iter(batches), place, counts.append))
    return [row for each in enriched for row in each.to_pylist()], counts[0]


def values(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(row["key"], row["value"]) for row in rows]


def test_rows_keep_their_order_and_get_their_key_s_value(spec: Enrichment) -> None:
    rows, counts = run(spec, batch("b", "a", "b"), batch("a"))
    assert rows == [
        {"n": 0, "key": "b", "value": "value of b"},
        {"n": 1, "key": "a", "value": "value of a"},
        {"n": 2, "key": "b", "value": "value of b"},
        {"n": 0, "key": "a", "value": "value of a"},
    ]
    assert (counts.rows, counts.misses) == (4, 2)


def test_a_missing_key_and_a_null_are_null(spec: Enrichment) -> None:
    rows, counts = run(spec, batch("gone", None, "a"))
    assert values(rows) == [("gone", None), (None, None), ("a", "value of a")]
    assert (counts.absent, counts.null_keys) == (1, 1)


def test_a_missing_key_and_a_null_are_dropped(spec: Enrichment) -> None:
    rows, _ = run(replace(spec, missing="drop"), batch("gone", None, "a"), batch("gone"), batch())
    assert values(rows) == [("a", "value of a")]


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("gone", "1 keys of key are not in HeldStore, the first is 'gone'; put them there"),
        (None, "1 rows have null in key"),
    ],
)
def test_a_missing_key_or_a_null_is_an_error(
    spec: Enrichment, key: str | None, sentence: str
) -> None:
    with pytest.raises(BadCall, match=sentence):
        run(replace(spec, missing="error"), batch("a", key))


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ("null", [("a", None), ("b", None), (None, None)]),
        ("drop", [(None, None)]),
    ],
)
def test_a_store_that_is_down_makes_of_rows_what_was_chosen(
    spec: Enrichment, store: HeldStore, failure: str, expected: list[tuple[object, object]]
) -> None:
    store.errors.append(ConnectionRefusedError("nobody"))
    rows, counts = run(replace(spec, failure=failure), batch("a", "b", None))
    assert values(rows) == expected
    assert counts.failed == 2


def test_a_store_that_is_down_fails_the_task_unless_told_otherwise(
    spec: Enrichment, store: HeldStore
) -> None:
    store.errors.append(ConnectionRefusedError("nobody"))
    with pytest.raises(TryAgain, match="2 keys could not be looked up"):
        run(spec, batch("a", "b"))


def test_a_missing_key_is_no_failure_and_a_failure_is_no_missing_key(
    spec: Enrichment, store: HeldStore
) -> None:
    chosen = replace(spec, missing="drop", failure="null")
    run(chosen, batch("gone"))
    store.errors.append(ConnectionRefusedError("nobody"))
    rows, _ = run(chosen, batch("gone", "a"))
    assert values(rows) == [("a", None)]


def test_the_cache_stays_with_the_worker_from_task_to_task(
    spec: Enrichment, store: HeldStore
) -> None:
    run(spec, batch("a"), micro_batch=0)
    _, counts = run(spec, batch("a"), micro_batch=1)
    assert store.asked == [["a"]]
    assert (counts.hits, counts.on_path) == (1, {1: 0})
    assert next(iter(counts.cache_bytes.values())) > 0


def test_the_next_record_batch_is_asked_for_before_the_last_is_answered(
    spec: Enrichment, store: HeldStore
) -> None:
    store.open.clear()

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch("a")
        assert store.began.acquire(timeout=60)
        store.open.set()
        yield batch("b")

    # The second batch is taken from Spark while the store holds the first one's answer.
    enriched = enrich_batches(spec, batches(), TaskPlace(), lambda _: None)
    assert pa.Table.from_batches(list(enriched)).num_rows == 2


def test_a_look_up_that_nobody_uses_goes_when_another_comes(
    spec: Enrichment, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spec, batch("a"))
    monkeypatch.setattr(worker, "LOOKUP_IDLE_S", -1.0)
    run(replace(spec, id=f"{spec.id} other"), batch("a"))
    assert spec.id not in worker._LOOKUPS


def test_a_value_of_another_type_than_the_column_is_refused(
    spec: Enrichment, store: HeldStore
) -> None:
    store.values["a"] = 7  # type: ignore[assignment]
    with pytest.raises(BadCall, match=r"the key 'a' in HeldStore cannot be used: 7 is no string"):
        run(spec, batch("a"))


def test_a_key_is_of_the_latest_of_its_rows() -> None:
    at = [datetime.datetime.fromtimestamp(second, datetime.UTC) for second in (1, 3, 2)]
    rows = pa.record_batch({"key": ["a", "a", "b"], "at": pa.array(at, pa.timestamp("us", "UTC"))})
    assert keyed(rows, "key", "at", 0).times_ms == [3_000, 2_000]
    nulls = pa.record_batch({"key": ["a"], "at": pa.array([None], pa.timestamp("us"))})
    assert keyed(nulls, "key", "at", 7).times_ms == [7]
    assert keyed(rows, "key", None, 7).times_ms == [7, 7]


@pytest.mark.parametrize("kind", [pa.float64(), pa.date32(), pa.list_(pa.string())])
def test_a_key_whose_text_is_not_plain_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(BadCall, match="cast it first"):
        check_key_type(kind, "key")


def test_a_time_that_is_no_timestamp_is_refused() -> None:
    with pytest.raises(BadCall, match="time is a timestamp"):
        check_time_type(pa.int64(), "at")


def test_counts_of_tasks_add_up() -> None:
    first, second = LookupCounts(rows=1, on_path={1: 2}), LookupCounts(rows=2, on_path={1: 1, 2: 0})
    for took_s in (0.001, 0.001, 0.1):
        second.note_round_trip(took_s)
    total = first.add(second)
    assert (total.rows, total.batches, total.batches_on_path) == (3, 2, 1)
    assert total.round_trip_ms(0.5) == pytest.approx(1.0, rel=0.1)
    assert total.round_trip_ms(0.99) == pytest.approx(100.0, rel=0.1)
    assert "1 of 2 batches waited for the store; round trip p50" in str(total)
    assert LookupCounts().round_trip_ms(0.5) is None
