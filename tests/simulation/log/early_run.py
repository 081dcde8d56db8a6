"""A run of the query that takes answers before the sync, and has state files beside its rows."""

from __future__ import annotations

import msgspec
import xxhash

from penstock.errors import PenstockError
from penstock.log.operations import AppendFiles, FileDraft, Mark
from penstock.model.ids import BatchId, FilePath, Lsn
from penstock.model.marker import FileRef, GivenPlaces, Marker
from simulation.log.expected_entries import Truth
from simulation.log.producers_and_queries import QUERY, Attempt, Run
from simulation.log.servers import Call, Cluster, Server


class EarlyRun(Run):
    """Names in its markers the starts that answered it early, and ends where that start is over.

    Every attempt at a task gives its file of state one path, as Spark does with checkpoint format
    1: what lies at a place that is given twice may look like what was put there first.
    """

    asks_early = True

    def __init__(self, cluster: Cluster, truth: Truth, number: int) -> None:
        super().__init__(cluster, truth, number)
        self.states: dict[int, FileRef] = {}  # of each attempt
        self.starts: dict[int, Lsn] = {}  # the last place that each gave early

    def compute(self, server: Server) -> None:
        """An attempt goes on for a while after another one has won, and appends its state too."""
        late = [
            attempt
            for attempt in self.attempts
            if attempt.partition in self.won and not (attempt.waits or attempt.left)
        ]
        late = [attempt for attempt in late if attempt.number not in self.states]
        if late and self.cluster.rng.random() < 0.5:
            self.append_state(late[0])
        else:
            super().compute(server)

    def win(self, attempt: Attempt) -> None:
        """An attempt ends with its state, the last thing it appends."""
        state = self.states.get(attempt.number)
        if state is None:
            self.append_state(attempt)
            return
        super().win(attempt)
        self.truth.states[QUERY, self.instance, self.batch, state.path] = self.payload(
            attempt.number
        )

    def append_state(self, attempt: Attempt) -> None:
        attempt.waits = True
        payload = self.payload(attempt.number)
        path = FilePath(f"state/0/{attempt.partition}/{self.batch + 1}.changelog")
        file = FileDraft(path, payload, xxhash.xxh3_64_intdigest(payload))
        append = AppendFiles(QUERY, self.instance, BatchId(self.batch), (file,))
        self.cluster.call(self, append, is_early=True)

    def payload(self, attempt: int) -> bytes:
        return f"state of {self.number}.{attempt}".encode()

    def marker(self) -> Marker:
        marker = super().marker()
        states = tuple(self.states[attempt.number] for attempt in self.won.values())
        given = tuple(GivenPlaces(start, last) for start, last in sorted(self.starts.items()))
        return msgspec.structs.replace(
            marker, files=marker.files + states, starts=given or msgspec.UNSET
        )

    def answered(self, call: Call) -> None:
        outcome = call.outcome
        assert outcome is not None  # answered means that it has one
        if outcome.start is not None:
            last = max(self.starts.get(outcome.start, Lsn(0)), *outcome.answer)
            self.starts[outcome.start] = last
        if outcome.refusal is None and self.is_state(call):
            self.appended_state(call.operation, outcome.answer[0])
            return
        super().answered(call)
        if outcome.refusal is None and isinstance(call.operation, Mark):
            self.states, self.starts = {}, {}

    def is_state(self, call: Call) -> bool:
        operation = call.operation
        return isinstance(operation, AppendFiles) and operation.files[0].path.startswith("state/")

    def appended_state(self, operation: object, place: Lsn) -> None:
        assert isinstance(operation, AppendFiles)  # is_state has seen it
        file = operation.files[0]
        for attempt in self.attempts:
            if self.payload(attempt.number) == file.payload:
                self.states[attempt.number] = FileRef(file.path, place)
                attempt.waits = False

    def refused(self, call: Call, refusal: PenstockError) -> None:
        if refusal.code == "other_start":
            self.truth.lost += 1
            self.alive = False
        else:
            super().refused(call, refusal)
