"""What one simulated world is made of: its sizes, its input, and the answer that is right."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

SinkKind = Literal["log", "file", "foreach"]
# What a piece of state is: a changelog, one that is too large for the log, or, where changelogs are
# off, a snapshot.
PieceKind = Literal["changelog", "large", "snapshot"]
KEYS = 5


class Violation(AssertionError):
    """An invariant does not hold, or the run ends with a wrong answer."""


class Cut(NamedTuple):
    """The input rows of a batch: what `offsets/<batch>` says."""

    start: int
    end: int


class Value(NamedTuple):
    """What the query keeps per key. The salt is the attempt's own, where attempts may differ."""

    rows: int
    total: int
    salt: int


State = Mapping[int, Value]
# What a task gives out: per key the salt its state had before, and the new value.
Output = Mapping[int, tuple[int, Value]]


@dataclass(frozen=True)
class Setup:
    """One query and how it is run. Everything else follows from the seed, step by step."""

    with_log: bool = True
    format: int = 2
    sink: SinkKind = "log"
    partitions: int = 2
    executors: int = 2
    behind: int = 2
    retain: int = 1
    snapshot_every: int = 2
    told_first: bool = True  # a task ends only after its ack 1 was taken in
    batches: int = 6
    pieces: PieceKind = "changelog"
    offsets_in_marker: bool = False  # with the marker, where the sink is the log
    # How often each goes on: the driver, tasks, acks, copies of state, writes to the log, writes to
    # the location, snapshots, the word of a lost executor.
    speeds: tuple[float, ...] = (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0)
    fault_rate: float = 0.05
    # How often each is the fault: a crash of the driver, a zombie, a crash of an executor, a failed
    # attempt, a speculative one, a piece written twice.
    faults: tuple[int, ...] = (1, 1, 1, 1, 1, 1)
    fault_steps: int = 350
    steps_max: int = 6000
    early: bool = False  # the log answers appends of the batch before it has synced them

    @classmethod
    def draw(cls, rng: random.Random) -> Setup:
        with_log = rng.random() < 0.6
        sinks: tuple[SinkKind, ...] = ("log", "log", "file", "foreach")
        return cls(
            with_log=with_log,
            format=rng.choice((1, 2)),
            sink=rng.choice(sinks if with_log else sinks[2:]),
            partitions=rng.choice((1, 2, 2, 3)),
            executors=rng.choice((1, 2, 3)),
            behind=rng.choice((0, 1, 2, 3)),
            retain=rng.choice((1, 1, 2)),
            snapshot_every=rng.choice((1, 2, 3)),
            told_first=rng.random() < 0.5,
            batches=rng.randint(3, 7),
            speeds=tuple(rng.choice((0.2, 1.0, 1.0, 4.0)) for _ in range(8)),
            fault_rate=rng.choice((0.01, 0.03, 0.06, 0.12)),
            faults=(*(rng.choice((0, 1, 1, 4)) for _ in range(5)), 1),
            pieces=rng.choice(("changelog", "changelog", "large", "snapshot")),
            offsets_in_marker=rng.random() < 0.5,
        )

    @property
    def pieces_in_log(self) -> bool:
        """Pieces are durable in the log, and not by being in the location."""
        return self.with_log and self.pieces == "changelog"

    @property
    def snapshots_kept(self) -> int:
        """How many versions clean-up leaves. Where snapshots are the pieces they are ahead of the
        commits in the location by as much as that may be behind the log, and two batches."""
        is_ahead = self.with_log and self.pieces == "snapshot"
        return max(self.retain, self.behind + 2) if is_ahead else self.retain

    @property
    def attempts_differ(self) -> bool:
        """Two attempts of a task may answer differently only where the marker names one of them
        together with its state; elsewhere Spark itself asks for deterministic queries."""
        return self.with_log and self.sink == "log" and self.format == 2


@dataclass
class Input:
    """Rows without end, each worth something of its own, so that none can stand for another."""

    seed: int
    keys: list[int] = field(default_factory=list)
    _states: list[dict[int, tuple[int, int]]] = field(default_factory=lambda: [{}])

    def row(self, number: int) -> tuple[int, int]:
        while len(self.keys) <= number:
            self.keys.append((self.seed + len(self.keys) * 2654435761 >> 7) % KEYS)
        return self.keys[number], 3**number

    def state(self, end: int) -> dict[int, tuple[int, int]]:
        """Count and total per key over the first `end` rows: what is right."""
        while len(self._states) <= end:
            key, worth = self.row(len(self._states) - 1)
            count, total = self._states[-1].get(key, (0, 0))
            self._states.append({**self._states[-1], key: (count + 1, total + worth)})
        return self._states[end]

    def touched(self, cut: Cut, partition: int, partitions: int) -> set[int]:
        keys = {self.row(number)[0] for number in range(cut.start, cut.end)}
        return {key for key in keys if key % partitions == partition}

    def compute(self, cut: Cut, partition: int, partitions: int, state: State, salt: int) -> Output:
        """What a task does with its rows, on the state it has loaded."""
        output: dict[int, tuple[int, Value]] = {}
        for number in range(cut.start, cut.end):
            key, worth = self.row(number)
            if key % partitions == partition:
                before = state.get(key, Value(0, 0, 0))
                count, total, _ = output[key][1] if key in output else before
                output[key] = (before.salt, Value(count + 1, total + worth, salt))
        return output
