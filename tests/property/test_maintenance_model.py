"""The log that is looked after, against the same model: trims, consumers, alterations, deletions.

Everything that holds of a log holds of one that is trimmed at any time: what is left is read as
before, what is gone is an error, and nothing goes that somebody needs.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from penstock.errors import PenstockError
from penstock.log.operations import (
    AlterStream,
    DeleteQuery,
    DeleteStream,
    ForgetConsumer,
    Mark,
    Move,
    MovePosition,
    Reclaim,
    Register,
    ResetQuery,
    SweepStream,
    TrimQuery,
    TrimStream,
)
from penstock.log.reading.recovery import checkpoint_of, file_bytes
from penstock.log.reading.visible import Range, page
from penstock.log.state import stream_point
from penstock.model.ids import BatchId, Lsn, QueryId, StreamName
from penstock.model.schema import schema_of
from support.log.drafts import SCHEMA, make, take
from support.log.machine import LogAgainstModel

streams = st.sampled_from(("s", "t"))
queries = st.sampled_from(("q", "p"))
groups = st.sampled_from(("g", "h"))
NEVER_MS = 10**9


class UpkeepAgainstModel(LogAgainstModel):
    """`points` are the trim points, `consumers` the positions and when each was heard of."""

    def __init__(self) -> None:
        super().__init__()
        self.points = {"s": 0, "t": 0}
        self.consumers: dict[tuple[str, str], tuple[int, int]] = {}
        self.gone: set[int] = set()
        self.trimmed_below = {"q": 0, "p": 0}
        self.columns = 0
        self.floors: dict[str, int] = {}
        self.left: dict[int, tuple[str, int, int]] = {}

    def start(self, stream: str) -> int:
        return self.points[stream]

    def marking(self, operation: Mark) -> Mark:
        return Mark(operation.marker, BatchId(operation.marker.batch))

    def attempt(self, lsn: int) -> int:
        with self.log.reading() as view:
            is_gone = view.head(Lsn(lsn)) is None
        return 0 if is_gone else super().attempt(lsn)

    @property
    def now_ms(self) -> int:
        return max(self.log_ms, self.clock.now_ms)

    # Consumers

    @rule(group=groups, stream=streams, data=st.data())
    def register(self, group: str, stream: str, data: st.DataObject) -> None:
        at = data.draw(st.sampled_from(self.ends(stream)))
        made = self.log.run(Register("group", group, StreamName(stream), Lsn(at)))
        consumer = self.consumers.setdefault((group, stream), (at, self.now_ms))
        assert (made.position, made.moved_at_ms) == consumer

    @rule(group=groups, stream=streams, data=st.data())
    def move(self, group: str, stream: str, data: st.DataObject) -> None:
        at = data.draw(st.sampled_from(self.ends(stream)))
        operation = MovePosition("group", group, (Move(StreamName(stream), Lsn(at)),))
        if (group, stream) not in self.consumers:
            self.refused(operation, "unknown_consumer")
            return
        self.log.run(operation)
        self.consumers[group, stream] = (at, self.now_ms)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        group, stream = data.draw(st.sampled_from(sorted(self.consumers)))
        self.log.run(ForgetConsumer("group", group, StreamName(stream)))
        del self.consumers[group, stream]

    # Trims

    @rule(stream=streams, away_ms=st.sampled_from((NEVER_MS, 40)), data=st.data())
    def trim(self, stream: str, away_ms: int, data: st.DataObject) -> None:
        asked = data.draw(st.integers(0, self.next_lsn))
        until = max(end for end in self.ends(stream) if end <= asked or end == self.start(stream))
        needed = [
            max(at, self.points[stream])
            for (_, name), (at, heard_ms) in self.consumers.items()
            if name == stream and self.now_ms - heard_ms <= away_ms
        ]
        operation = TrimStream(StreamName(stream), Lsn(asked), away_ms)
        if until > self.points[stream] and any(at < until for at in needed):
            self.refused(operation, "still_needed")
            return
        assert self.log.run(operation).until == max(until, self.points[stream])
        self.points[stream] = max(until, self.points[stream])
        self.shown[stream] = [each for each in self.shown[stream] if each[0] > until]

    @rule(stream=streams)
    def read_what_is_gone(self, stream: str) -> None:
        with self.log.reading() as view:
            record = view.stream(StreamName(stream))
            assert record is not None
            end = self.ends(stream)[-1]
            for after in range(self.points[stream]):
                with pytest.raises(PenstockError) as caught:
                    page(view, Range(record, Lsn(after), Lsn(end)), 1 << 20, 1_000)
                assert caught.value.code == "trimmed"

    def named(self, query: str) -> set[int]:
        lsns: set[int] = set()
        for operation, _ in self.marked[query].values():
            assert isinstance(operation, Mark)
            lsns |= {lsn for write in operation.marker.writes for lsn in write.entries}
            lsns |= {file.entry for file in operation.marker.files}
        return lsns

    @rule(query=queries)
    def reclaim(self, query: str) -> None:
        """Asked for everything there ever was, the log gives back what waits in vain."""
        if query not in self.instances:
            return
        instance, last = self.instances[query], max(self.marked[query], default=-1)
        recorded: dict[int, int] = {}
        for lsn, (owner, _, batch, path) in self.files.items():
            if owner == query and batch > last and path == f"offsets/{batch}":
                recorded[batch] = lsn
        mine = [(n, i, b) for n, (_, q, i, b, _, _) in self.waiting.items() if q == query]
        mine += [(n, i, b) for n, (q, i, b, _) in self.files.items() if q == query]
        vain = {n for n, i, b in mine if (i < instance or b <= last)} - set(recorded.values())
        vain -= self.named(query) | self.gone
        # What a deleted stream has left waits in vain as well, until it is swept.
        left = {
            n for n, (q, i, b) in self.left.items() if q == query and (i < instance or b <= last)
        }
        asked = Reclaim(QueryId(query), tuple(Lsn(lsn) for lsn in range(1, self.next_lsn)))
        assert len(vain) <= self.log.run(asked).entries <= len(vain | left)
        self.gone |= vain

    @rule(query=queries, below=st.integers(0, 12))
    def trim_query(self, query: str, below: int) -> None:
        if query not in self.instances:
            return
        operation = TrimQuery(QueryId(query), BatchId(below))
        if below > max(self.marked[query], default=-1):
            if below > 0:
                self.refused(operation, "still_needed")
            return
        self.log.run(operation)
        for batch in [each for each in self.marked[query] if each < below]:
            self.gone |= self.files_of(query, batch)
            del self.marked[query][batch]
            self.trimmed_below[query] = below

    def files_of(self, query: str, batch: int) -> set[int]:
        operation, _ = self.marked[query][batch]
        assert isinstance(operation, Mark)
        # What the marker named is out of reach of a later reclaim, being gone or visible.
        rows_ = {lsn for write in operation.marker.writes for lsn in write.entries}
        return {file.entry for file in operation.marker.files} | rows_

    @precondition(lambda self: self.files)
    @rule(query=queries, after=st.integers(-1, 6))
    def recover(self, query: str, after: int) -> None:
        if query not in self.instances:
            return
        id_ = QueryId(query)
        asked = None if after < 0 else BatchId(after)
        with self.log.reading() as view:
            if after + 1 < self.trimmed_below[query]:
                with pytest.raises(PenstockError) as caught:
                    checkpoint_of(view, id_, asked, 3, 1 << 20)
                assert caught.value.code == "trimmed"
                return
            got = checkpoint_of(view, id_, asked, 3, 1 << 20)
            marker_lsns = [lsn for b, (_, lsn) in sorted(self.marked[query].items()) if b > after]
            assert [marker.lsn for marker in got.markers] == marker_lsns[:3]
            for marker in got.markers:
                for file in marker.files:
                    assert file_bytes(view, id_, file.entry) == file.path.encode()

    # Life

    @rule(stream=streams)
    def add_a_column(self, stream: str) -> None:
        self.columns += 1
        with self.log.reading() as view:
            record = view.stream(StreamName(stream))
            assert record is not None
            count = len(record.versions) + 1
        names = ", ".join(f"c{self.columns}_{each} string" for each in range(count))
        schema = schema_of(f"k bigint, {names}")
        assert schema.field(0) == SCHEMA.field(0)
        operation = AlterStream(StreamName(stream), schema.serialize().to_pybytes())
        if count > 1:
            self.refused(operation, "would_lose_data")
        else:
            assert len(self.log.run(operation).versions) == 1

    @rule()
    def delete_a_stream(self) -> None:
        """And make one of its name again: the model's one begins where the old one ended."""
        used = any(name == "t" for _, name in self.consumers)
        if used:
            self.refused(DeleteStream(StreamName("t")), "stream_in_use")
        self.log.run(DeleteStream(StreamName("t"), force=True))
        self.log.run(make("t", 2))
        self.consumers = {key: at for key, at in self.consumers.items() if key[1] != "t"}
        self.shown["t"] = []
        self.sequences.pop("t", None)
        lost = {lsn for lsn, each in self.waiting.items() if each[0] == "t"}
        self.left.update({n: self.waiting[n][1:4] for n in lost})
        self.waiting = {lsn: each for lsn, each in self.waiting.items() if lsn not in lost}
        with self.log.reading() as view:
            point = view.trimmed(stream_point(StreamName("t")))
            assert point >= self.points["t"]
            assert point >= max(lost - self.gone, default=0)
        self.points["t"] = point

    @rule(entries_max=st.integers(1, 5))
    def sweep(self, entries_max: int) -> None:
        with self.log.reading() as view:
            left = [each.id for each in view.all_deleted()]
        for stream_id in left:
            self.log.run(SweepStream(stream_id, entries_max))

    @rule(query=queries)
    def reset(self, query: str) -> None:
        if query not in self.instances:
            return
        self.runs += 1
        taken = self.log.run(ResetQuery(QueryId(query), f"run-{self.runs}"))
        self.took(1)
        assert taken.instance == self.instances[query] + 1
        self.instances[query] = taken.instance
        self.leave(query)

    @rule(query=queries)
    def delete_query(self, query: str) -> None:
        if query not in self.instances:
            return
        self.log.run(DeleteQuery(QueryId(query)))
        self.leave(query)
        # It comes back at once, counting on.
        self.runs += 1
        before = self.instances[query]
        assert self.log.run(take(query, f"run-{self.runs}")).instance == before + 1
        self.took(1)
        self.instances[query] = before + 1

    def leave(self, query: str) -> None:
        """Nothing is left of the query but what it made visible."""
        self.marked[query] = {}
        self.trimmed_below[query] = 0
        self.gone |= {lsn for lsn, each in self.waiting.items() if each[1] == query}
        self.gone |= {lsn for lsn, each in self.files.items() if each[0] == query}
        self.waiting = {lsn: each for lsn, each in self.waiting.items() if each[1] != query}
        self.files = {lsn: each for lsn, each in self.files.items() if each[0] != query}


TestUpkeepAgainstModel = UpkeepAgainstModel.TestCase
TestUpkeepAgainstModel.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
