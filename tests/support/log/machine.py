"""A machine that drives the embedded log beside a model that fits on a page."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.admission.cut import Limits, cut_batch
from penstock.errors import PenstockError
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import Mark, Operation
from penstock.log.reading.recovery import checkpoint_of, file_bytes
from penstock.log.reading.visible import Range, entries_in, latest, position_at
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName, Substream
from penstock.testing.clock import ManualClock
from support.log.drafts import (
    draft,
    files,
    make,
    mark,
    pending,
    rows,
    stamp,
    take,
    values_of,
)

STREAMS = ("s", "t")
SUBSTREAMS = 2

streams = st.sampled_from(STREAMS)
queries = st.sampled_from(("q", "p"))
# A path stands for the batch's own file; the same one twice, and a repeat, supersede the first.
file_sets = st.lists(
    st.sampled_from(("offsets/{batch}", "state/0/0/{batch}.changelog", "offsets/{batch}.crc")),
    min_size=1,
    max_size=3,
)
places = st.lists(st.integers(0, SUBSTREAMS - 1), min_size=1, max_size=3)


class LogAgainstModel(RuleBasedStateMachine):
    """What each stream shows, as (commit, time, substream, values), is `shown`; what lies in the
    checkpoint files of the queries, as (query, instance, batch, path), is `files`."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-log-"))
        self.clock = ManualClock()
        self.log = EmbeddedLog.open(self.folder / "data", clock=self.clock)
        self.next_lsn = 1
        self.log_ms = 0
        self.value = 0
        self.shown: dict[str, list[tuple[int, int, int, list[int]]]] = {s: [] for s in STREAMS}
        self.waiting: dict[int, tuple[str, str, int, int, int, list[int]]] = {}
        self.instances: dict[str, int] = {}
        self.runs = 0
        self.marked: dict[str, dict[int, tuple[Operation, int]]] = {"q": {}, "p": {}}
        self.sequences: dict[str, tuple[int, int]] = {}
        self.files: dict[int, tuple[str, int, int, str]] = {}

    @initialize()
    def make_streams(self) -> None:
        for name in STREAMS:
            self.log.run(make(name, SUBSTREAMS))

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.folder)

    def fresh(self) -> int:
        self.value += 1
        return self.value

    def took(self, count: int) -> int:
        """The first of the next `count` places; the log's own time never goes back."""
        self.log_ms = max(self.log_ms, self.clock.now_ms)
        first, self.next_lsn = self.next_lsn, self.next_lsn + count
        return first

    def start(self, stream: str) -> int:
        """The position from which on the stream is whole."""
        return 0

    def marking(self, operation: Mark) -> Mark:
        """The operation as it is sent."""
        return operation

    def next_batch(self, query: str) -> int:
        """Even numbers only, so that there are batches before the last one without a marker."""
        return max(self.marked[query], default=-2) + 2

    def refused(self, operation: Operation, code: str) -> None:
        with pytest.raises(PenstockError) as caught:
            self.log.run(operation)
        assert caught.value.code == code

    @rule(stream=streams, substreams=places)
    def append(self, stream: str, substreams: list[int]) -> None:
        drafts = [draft(place, self.fresh()) for place in substreams]
        answer = self.log.run(rows(*drafts, stream=stream))
        self.append_in_model(stream, substreams, answer.position)

    def append_in_model(self, stream: str, substreams: list[int], position: int) -> None:
        count = len(substreams)
        assert position == self.took(count) + count - 1
        for place in sorted(set(substreams)):
            values = [
                self.value - count + 1 + n for n, other in enumerate(substreams) if other == place
            ]
            self.shown[stream].append((position, self.log_ms, place, values))

    @rule(stream=streams, step=st.integers(-1, 2))
    def append_with_a_sequence(self, stream: str, step: int) -> None:
        last, answered = self.sequences.get(stream, (0, 0))
        sequence = max(1, last + step)
        operation = rows(draft(0, self.fresh()), stream=stream, producer="p", sequence=sequence)
        answer = self.log.run(operation)
        assert answer.duplicate == (sequence <= last)
        if answer.duplicate:
            assert answer.position == answered
            return
        self.append_in_model(stream, [0], answer.position)
        self.sequences[stream] = (sequence, answer.position)

    @rule(query=queries)
    def take_over(self, query: str) -> None:
        self.runs += 1
        operation = take(query, f"run-{self.runs}")
        taken = self.log.run(operation)
        assert taken.instance == self.instances.get(query, 0) + 1
        assert (taken.marker.batch if taken.marker else -1) == max(self.marked[query], default=-1)
        self.instances[query] = taken.instance
        self.took(1)
        assert self.log.run(operation).instance == taken.instance

    @precondition(lambda self: self.instances)
    @rule(stream=streams, query=queries, substreams=places, attempt=st.integers(0, 1))
    def append_pending(self, stream: str, query: str, substreams: list[int], attempt: int) -> None:
        if query not in self.instances:
            return
        instance, batch = self.instances[query], self.next_batch(query)
        drafts = [draft(place, self.fresh()) for place in substreams]
        by = stamp(query, instance, batch, attempt)
        lsns = self.log.run(pending(*drafts, stream=stream, by=by))
        first = self.took(len(drafts))
        assert list(lsns) == list(range(first, first + len(drafts)))
        for n, (lsn, place) in enumerate(zip(lsns, substreams, strict=True)):
            values = [self.value - len(drafts) + 1 + n]
            self.waiting[lsn] = (stream, query, instance, batch, place, values)

    @precondition(lambda self: self.instances)
    @rule(stream=streams, query=queries, attempt=st.integers(0, 1), data=st.data())
    def mark_batch(self, stream: str, query: str, attempt: int, data: st.DataObject) -> None:
        if query not in self.instances:
            return
        instance, batch = self.instances[query], self.next_batch(query)
        ready = [
            lsn
            for lsn, (s, q, i, b, _, _) in self.waiting.items()
            if (s, q, i, b) == (stream, query, instance, batch) and self.attempt(lsn) == attempt
        ]
        chosen = data.draw(st.permutations(ready)) if ready else []
        named = {
            path: lsn
            for lsn, (q, i, b, path) in self.files.items()
            if (q, i, b) == (query, instance, batch) and data.draw(st.booleans())
        }
        operation = mark(
            *chosen, query=query, instance=instance, batch=batch, stream=stream, attempt=attempt,
            files=named,
        )  # fmt: skip
        operation = self.marking(operation)
        lsn = self.log.run(operation)
        assert lsn == self.took(1)
        for place in range(SUBSTREAMS):
            values = [v for c in chosen if self.waiting[c][4] == place for v in self.waiting[c][5]]
            if values:
                self.shown[stream].append((lsn, self.log_ms, place, values))
        self.marked[query][batch] = (operation, lsn)

    @precondition(lambda self: self.instances)
    @rule(query=queries, paths=file_sets, ahead=st.integers(0, 1))
    def append_files(self, query: str, paths: list[str], ahead: int) -> None:
        """Of the next batch, or of one that comes later."""
        if query not in self.instances:
            return
        instance, batch = self.instances[query], self.next_batch(query) + 2 * ahead
        batch_paths = [path.format(batch=batch) for path in paths]
        operation = files(*batch_paths, query=query, instance=instance, batch=batch)
        lsns = self.log.run(operation)
        first = self.took(len(batch_paths))
        assert list(lsns) == list(range(first, first + len(batch_paths)))
        for lsn, path in zip(lsns, batch_paths, strict=True):
            self.files[lsn] = (query, instance, batch, path)
        stale = files(*batch_paths, query=query, instance=instance - 1, batch=batch)
        self.refused(stale, "fenced")

    @precondition(lambda self: self.files)
    @rule(query=queries, after=st.integers(-1, 6))
    def recover(self, query: str, after: int) -> None:
        if query not in self.instances:
            return
        marker_lsns = [lsn for b, (_, lsn) in sorted(self.marked[query].items()) if b > after]
        last = max(self.marked[query], default=-1)
        with self.log.reading() as view:
            id_ = QueryId(query)
            got = checkpoint_of(view, id_, None if after < 0 else BatchId(after), 3, 1 << 20)
            assert [marker.lsn for marker in got.markers] == marker_lsns[:3]
            assert got.more == (len(marker_lsns) > 3)
            for marker in got.markers:
                for file in marker.files:
                    assert file_bytes(view, id_, file.entry) == file.path.encode()
            for lsn, (owner, _, _, path) in self.files.items():
                if owner == query:
                    assert file_bytes(view, id_, Lsn(lsn)) == path.encode()
        unmarked = [
            (b, -lsn, i)
            for lsn, (q, i, b, path) in self.files.items()
            if q == query and b > last and path == f"offsets/{b}"
        ]
        expected = min(unmarked, default=None)
        if expected is None:
            assert got.offsets is None
        else:
            assert got.offsets is not None
            offsets = (got.offsets.batch, -got.offsets.entry, got.offsets.instance)
            assert offsets == expected

    def attempt(self, lsn: int) -> int:
        with self.log.reading() as view:
            head = view.head(Lsn(lsn))
        assert head is not None
        assert head.stamp is not None
        return head.stamp.attempt

    @precondition(lambda self: any(self.marked.values()))
    @rule(query=queries, data=st.data())
    def mark_again(self, query: str, data: st.DataObject) -> None:
        if not self.marked[query]:
            return
        batch = data.draw(st.sampled_from(sorted(self.marked[query])))
        operation, lsn = self.marked[query][batch]
        if operation.marker.instance != self.instances[query]:  # type: ignore[union-attr]
            self.refused(operation, "fenced")
            return
        assert self.log.run(operation) == lsn
        other = mark(99_999, query=query, instance=self.instances[query], batch=batch)
        self.refused(other, "already_marked")
        if batch > 0:
            skipped = mark(query=query, instance=self.instances[query], batch=batch - 1)
            self.refused(skipped, "already_marked")

    @precondition(lambda self: self.instances)
    @rule(query=queries)
    def mark_what_is_not_ours(self, query: str) -> None:
        """Every entry there is, each under its own stream and attempt but with another stamp."""
        if query not in self.instances:
            return
        instance, batch = self.instances[query], 9_999
        for lsn in range(1, self.next_lsn + 1):
            stream = self.waiting[lsn][0] if lsn in self.waiting else "s"
            attempt = self.attempt(lsn) if lsn in self.waiting else 0
            operation = mark(
                lsn, query=query, instance=instance, batch=batch, stream=stream, attempt=attempt
            )
            self.refused(operation, "unknown_entries")
            path = self.files[lsn][3] if lsn in self.files else "offsets/9999"
            named = mark(query=query, instance=instance, batch=batch, files={path: lsn})
            self.refused(named, "unknown_entries")
        self.refused(mark(query=query, instance=instance - 1, batch=batch), "fenced")

    @rule(ms=st.integers(-50, 100))
    def time_passes(self, ms: int) -> None:
        """Or goes back, as wall time may."""
        self.clock.turn(ms)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = EmbeddedLog.open(self.folder / "data", clock=self.clock)

    def ends(self, stream: str) -> list[int]:
        return [self.start(stream), *sorted({commit for commit, _, _, _ in self.shown[stream]})]

    @rule(stream=streams)
    def cut_every_batch(self, stream: str) -> None:
        shown, ends = self.shown[stream], self.ends(stream)
        with self.log.reading() as view:
            record = view.stream(StreamName(stream))
            assert record is not None
            last = latest(view, record)
            assert last == ends[-1]
            for after, rows_max in itertools.product(ends, range(1, 8)):
                end = self.told_end(shown, ends, after, rows_max)
                assert cut_batch(view, record, Lsn(after), last, Limits(rows_max)).end == end
            times = {arrived + step for _, arrived, _, _ in shown for step in (-1, 0, 1)}
            for time_ms in times:
                before = (commit for commit, arrived, _, _ in shown if arrived < time_ms)
                at = max(before, default=self.start(stream))
                assert position_at(view, record, time_ms) == at

    def told_end(
        self, shown: list[tuple[int, int, int, list[int]]], ends: list[int], after: int, most: int
    ) -> int:
        """The last end within `most` rows after `after`, else the next one, else `after`."""
        end_within = after
        for end in (end for end in ends if end > after):
            count = sum(len(values) for c, _, _, values in shown if after < c <= end)
            if count > most:
                return end_within if end_within > after else end
            end_within = end
        return end_within

    @rule(stream=streams)
    def read_between_every_two_positions(self, stream: str) -> None:
        for after, until in itertools.combinations_with_replacement(self.ends(stream)[-12:], 2):
            self.compare(stream, after, until)

    def compare(self, stream: str, after: int, until: int) -> None:
        commits = [each for each in self.shown[stream] if after < each[0] <= until]
        with self.log.reading() as view:
            for place in range(SUBSTREAMS):
                assert self.read(view, stream, after, until, place) == [
                    v for _, _, p, values in commits if p == place for v in values
                ]
            assert self.read(view, stream, after, until, None) == [
                v for _, _, _, values in commits for v in values
            ]

    def read(
        self, view: StoreView, stream: str, after: int, until: int, place: int | None
    ) -> list[int]:
        record = view.stream(StreamName(stream))
        assert record is not None
        substream = None if place is None else Substream(place)
        asked = Range(record, Lsn(after), Lsn(until), substream)
        return [v for _, lsn in entries_in(view, asked) for v in values_of(view.payload(lsn))]

    @invariant()
    def everything_holds(self) -> None:
        invariants.check(self.log)
        with self.log.reading() as view:
            assert view.next_lsn == self.next_lsn
