"""How old commits are, along chains of queries, and how old what waits is, on a real store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import Mark, Register, TrimStream
from penstock.log.reading.waiting import Oldest, oldest_waiting
from penstock.log.rules import ORIGINS_KEPT, Rules
from penstock.log.state import Commit, StreamRecord
from penstock.log.store.origin_tables import OriginTables
from penstock.model.ids import Lsn, StreamName
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, make, mark, pending, rows, stamp, take

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "protocol.json").read_text("utf-8")
)["origins"]
END = (1 << 63) - 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(wall_ms=0)


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "data", Settings(), clock)
    for name in "abcd":
        log.run(make(name))
    yield log
    invariants.check(log)
    log.close()


class Chain:
    """A log, and which batch each of its queries is at."""

    def __init__(self, log: EmbeddedLog, clock: ManualClock) -> None:
        self.log = log
        self.clock = clock
        self._batches: dict[str, int] = {}

    def at(self, wall_ms: int) -> None:
        self.clock.turn(wall_ms - self.clock.wall_ms())

    def stream(self, name: str) -> StreamRecord:
        with self.log.reading() as view:
            record = view.stream(StreamName(name))
            assert record is not None
            return record

    def commits(self, name: str) -> list[Commit]:
        with self.log.reading() as view:
            return list(view.commits(self.stream(name), 0, END))

    def append(self, name: str) -> None:
        self.log.run(rows(draft(0, 1), stream=name))

    def take(self, query: str, reads: list[str]) -> None:
        """A query starts, and what it reads is held for it from where the stream begins."""
        self._batches[query] = 0
        self.log.run(take(query))
        for name in reads:
            self.log.run(Register("query", query, StreamName(name), Lsn(0)))

    def run_batch(self, query: str, positions: dict[str, Lsn], writes: str) -> None:
        batch = self._batches[query]
        self._batches[query] += 1
        (entry,) = self.log.run(pending(draft(0, 1), stream=writes, by=stamp(query, batch=batch)))
        marked = mark(entry, query=query, batch=batch, stream=writes).marker
        self.log.run(Mark(msgspec.structs.replace(marked, positions=positions)))

    def oldest(self, name: str, after: int, until: int | None = None) -> Oldest | None:
        with self.log.reading() as view:
            end = None if until is None else Lsn(until)
            return oldest_waiting(view, self.stream(name), Lsn(after), end)


@pytest.fixture
def chain(log: EmbeddedLog, clock: ManualClock) -> Chain:
    return Chain(log, clock)


def origin_of(commit: Commit) -> int:
    return commit.arrived_at_ms if commit.origin_at_ms is None else commit.origin_at_ms


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_commit_keeps_its_oldest_origin_as_written_down(
    vector: dict[str, Any], chain: Chain
) -> None:
    inputs: dict[str, set[str]] = {}
    for step in vector["steps"]:
        if "query" in step:
            inputs.setdefault(step["query"], set()).update(step["reads"])
    for query, names in inputs.items():
        chain.take(query, sorted(names))
    for step in vector["steps"]:
        chain.at(step["at_ms"])
        if "append" in step:
            written = step["append"]
            chain.append(written)
        else:
            written = step["writes"]
            counts: dict[str, int] = step["reads"]
            positions = {name: chain.commits(name)[n - 1].lsn for name, n in counts.items()}
            chain.run_batch(step["query"], positions, written)
        assert origin_of(chain.commits(written)[-1]) == step["origin_at_ms"]


def test_what_waits_is_as_old_as_its_first_arrival_and_its_oldest_origin(chain: Chain) -> None:
    """A stream b that a producer appends to at 150, and a query with rows of a from 100 at 200.

    b:  150 (150)   200 (100)   250 (250)
    """
    chain.take("q", ["a"])
    chain.at(100)
    chain.append("a")
    assert chain.oldest("b", 0) is None
    chain.at(150)
    chain.append("b")
    chain.at(200)
    chain.run_batch("q", {"a": chain.commits("a")[-1].lsn}, "b")
    chain.at(250)
    chain.append("b")
    first, marked, last = (commit.lsn for commit in chain.commits("b"))
    assert chain.oldest("b", 0) == Oldest(150, 100)
    assert chain.oldest("b", 0, first) == Oldest(150, 150)
    assert chain.oldest("b", first) == Oldest(200, 100)
    assert chain.oldest("b", marked) == Oldest(250, 250)
    assert chain.oldest("b", last) is None


def test_a_query_without_a_position_of_its_own_counts_the_last_commit_it_read(
    chain: Chain,
) -> None:
    chain.take("q", [])
    chain.at(100)
    chain.append("a")
    chain.at(150)
    chain.append("a")
    chain.at(200)
    chain.run_batch("q", {"a": chain.commits("a")[-1].lsn}, "b")
    assert chain.commits("b")[-1].origin_at_ms == 150


def test_a_marker_that_says_any_number_as_its_position_is_as_old_as_what_is_there(
    chain: Chain,
) -> None:
    chain.take("q", ["a"])
    chain.at(100)
    chain.append("a")
    chain.at(200)
    chain.run_batch("q", {"a": Lsn(1 << 80), "gone": Lsn(7)}, "b")
    assert chain.commits("b")[-1].origin_at_ms == 100


def test_a_marker_of_an_earlier_version_keeps_no_origin() -> None:
    assert Rules().version >= ORIGINS_KEPT, "servers of this version keep it"
    stored = msgspec.msgpack.encode([7, 1, 10, 500, [0]])
    assert msgspec.msgpack.decode(stored, type=Commit).origin_at_ms is None


def fed(chain: Chain, batches: int) -> list[Commit]:
    """A stream b that two queries feed in turn, one of them far behind in its input."""
    chain.take("q", ["a"])
    chain.take("r", ["a"])
    for batch in range(batches):
        chain.at(100 + 20 * batch)
        chain.append("a")
        positions = [commit.lsn for commit in chain.commits("a")]
        chain.at(110 + 20 * batch)
        chain.run_batch("q", {"a": positions[-1]}, "b")
        if batch % 3 == 2:
            chain.run_batch("r", {"a": positions[batch // 3]}, "b")
    return chain.commits("b")


def test_the_oldest_origin_of_every_range_is_found_also_after_a_trim(chain: Chain) -> None:
    commits = fed(chain, 24)
    ends = [Lsn(0), *(commit.lsn for commit in commits)]
    for kept in (ends, ends[9:]):
        for first, after in enumerate(kept):
            for until in kept[first:]:
                between = [each for each in commits if after < each.lsn <= until]
                oldest = (
                    Oldest(between[0].arrived_at_ms, min(map(origin_of, between)))
                    if between
                    else None
                )
                assert chain.oldest("b", after, until) == oldest
        chain.log.run(TrimStream(StreamName("b"), ends[9], 10_000, Lsn(0)))
        invariants.check(chain.log)


def test_what_waits_is_told_in_few_looks_however_much_waits(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = fed(chain, 60)
    looks = 0
    find = OriginTables._linked_at

    def counted(tables: OriginTables, stream_id: int, lsn: int) -> Any:
        nonlocal looks
        looks += 1
        return find(tables, stream_id, lsn)

    monkeypatch.setattr(OriginTables, "_linked_at", counted)
    most = 0
    for after in (Lsn(0), *(commit.lsn for commit in commits)):
        looks = 0
        chain.oldest("b", after)
        most = max(most, looks)
    assert len(commits) == 80
    assert most <= 13, "about twice the logarithm of 80"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40))
def test_links_find_the_oldest_of_any_range_of_a_list(origins: list[int]) -> None:
    """The links alone, over a table that is a dictionary."""
    tables = _ListedLinks(origins)
    for after in range(len(origins) + 1):
        for until in range(after, len(origins) + 1):
            least = min(origins[after:until], default=None)
            assert tables.oldest_origin(_STREAM, after, until) == least


_STREAM = StreamRecord(1, StreamName("s"), b"", 1, ())


class _ListedLinks(OriginTables):
    """Links of commits at places 1, 2, 3, …"""

    def __init__(self, origins: list[int]) -> None:
        self._links: list[Any] = []
        for origin_at_ms in origins:
            self._links.append(self.origin_link(1, origin_at_ms))

    def get(self, table: str, key: bytes) -> Any:
        place = int.from_bytes(key[-8:], "big")
        return msgspec.msgpack.encode(self._links[place - 1]) if place else None

    def _linked_at(self, stream_id: int, lsn: int) -> Any:
        place = min(lsn, len(self._links))
        return (Lsn(place), self._links[place - 1]) if place else None
