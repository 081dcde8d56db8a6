"""What one simulated world of the log is made of: who takes part, how fast, and what goes wrong."""

from __future__ import annotations

import random
from dataclasses import dataclass

INPUT = "in"
OUTPUT = "out"
STEP_MS = 10


@dataclass(frozen=True)
class LogSetup:
    """Everything else follows from the seed, step by step.

    One server has the log to itself; several stand in front of a replicated one, each applying its
    messages at its own pace.
    """

    servers: int = 1
    substreams: int = 2
    producers: int = 2
    appends: int = 4  # of each producer
    cut_max: int = 3  # commits in a batch
    attempts_max: int = 2
    tasks: int = 1
    span_max: int = 3  # records a task marks at once
    changes: int = 4  # of streams and queries: columns, substreams, deleted, reset
    # How often each goes on: messages between clients and servers, producers, the query, tasks,
    # publishing, applying, readers, the collector of garbage, writing the state down and purging,
    # late copies of messages, and those who change streams and queries or live with that.
    speeds: tuple[float, ...] = (4.0, 1.0, 2.0, 2.0, 3.0, 4.0, 1.0, 0.3, 0.1, 0.3, 1.0)
    lost: float = 0.05  # of messages between clients and servers, and servers and the stream
    repeated: float = 0.05
    fault_rate: float = 0.03
    # How often each is the fault: the query crashes, is left as a zombie, a task crashes, is left
    # as a zombie, a server crashes, a reader crashes, the clock jumps. Now and
    # then it is the query that is reset instead.
    faults: tuple[int, ...] = (1, 1, 1, 1, 1, 1, 1)
    fault_steps: int = 250
    steps_max: int = 20_000
    unknown_max: int = 4  # entries a reader holds before it sets a producer aside
    producers_max: int = 16  # producers the log's own filter remembers
    # How long both filters remember a silent producer: simulated ones repeat until they are
    # answered, which may take most of a run.
    repeats_kept_ms: int = 120_000
    filters_records: bool = True  # the log does; its readers always do
    trim_after_ms: int = 500
    started_at_ms: int = 1_000_000
    early: bool = False  # a server alone answers what its query appends before it has synced it

    @property
    def places(self) -> int:
        """Substreams of the streams that grow, in the end."""
        return self.substreams + (1 if self.changes else 0)

    @classmethod
    def draw(cls, rng: random.Random) -> LogSetup:
        return cls(
            servers=rng.choice((1, 1, 2, 3)),
            substreams=rng.choice((1, 2)),
            producers=rng.choice((1, 2, 2, 3)),
            appends=rng.randint(1, 4),
            cut_max=rng.choice((1, 2, 4)),
            attempts_max=rng.choice((1, 2, 3)),
            tasks=rng.choice((0, 1, 1, 2)),
            span_max=rng.choice((1, 3, 5)),
            speeds=tuple(
                rng.choice(pace)
                for pace in (
                    (1.0, 4.0, 8.0),
                    *((0.3, 1.0, 3.0),) * 3,
                    *((1.0, 3.0),) * 2,
                    (0.2, 1.0),
                    (0.02, 0.2),
                    *((0.1, 0.5),) * 2,
                    (0.5, 2.0),
                )
            ),
            lost=rng.choice((0.0, 0.05, 0.15)),
            repeated=rng.choice((0.0, 0.05, 0.2)),
            fault_rate=rng.choice((0.01, 0.03, 0.08)),
            faults=(*(rng.choice((0, 1, 1, 3)) for _ in range(6)), 1),
            fault_steps=rng.choice((80, 120, 250)),
            unknown_max=rng.choice((1, 3, 8, 1000)),
            filters_records=rng.random() < 0.7,
            trim_after_ms=rng.choice((0, 300, 2_000)),
            changes=rng.choice((0, 0, 3, 6)),
        )
