"""The simulated world as values: cluster, queries, their cost and their traffic."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from penstock.admission.terms import PolicyName, Terms
from penstock.simulate.traffic import Recorded, Traffic


@dataclass(frozen=True)
class Stage:
    """A stage of every batch: `tasks` tasks that share its rows evenly.

    A task takes a core for `fixed_ms`, and `row_us` for each of its rows.
    """

    tasks: int
    fixed_ms: float
    row_us: float


@dataclass(frozen=True)
class Cost:
    """The cost of a query's batches: time on the driver before and after, and tasks between."""

    stages: tuple[Stage, ...]
    planning_ms: float
    release_ms: float
    """From the end of the last task to the moment at which the batch is visible."""
    owes_empty: bool = False
    """Whether Spark runs a batch without data after one with, because a watermark has moved."""

    def core_ms(self, rows: float) -> float:
        """The core-time of a batch, without noise and stragglers."""
        return sum(
            stage.tasks * stage.fixed_ms + rows * stage.row_us / 1000 for stage in self.stages
        )

    def floor_ms(self, cores: int) -> float:
        """The shortest time from cut to visible that a batch of one row can take."""
        waves = (-(-stage.tasks // cores) * stage.fixed_ms for stage in self.stages)
        return self.planning_ms + sum(waves) + self.release_ms


@dataclass(frozen=True)
class Luck:
    """The spread of times: of every task and of planning, and stragglers among tasks."""

    spread: float = 0.1
    """The standard deviation of the logarithm of a time."""
    straggler_share: float = 0.0
    straggler_factor: float = 4.0
    slow_workers: int = 0
    slow_factor: float = 2.0
    """Tasks take this much longer on the first `slow_workers` workers."""


NO_LUCK = Luck(spread=0.0)


@dataclass(frozen=True)
class Cluster:
    """Workers with cores, all given to one Spark application."""

    workers: int
    cores_per_worker: int
    luck: Luck = field(default_factory=Luck)
    handover_ms: float = 2.0
    """From the end of a stage to the submission of the next: others may take cores meanwhile."""

    @property
    def cores(self) -> int:
        return self.workers * self.cores_per_worker


@dataclass(frozen=True)
class QueryModel:
    """A query of the simulated application."""

    name: str
    cost: Cost
    terms: Terms
    traffic: Traffic | Recorded
    row_bytes: int = 65


@dataclass(frozen=True)
class World:
    """A whole simulated run: the same world always gives the same outcome."""

    seed: int
    cluster: Cluster
    queries: tuple[QueryModel, ...]
    order: str
    seconds: float
    """Rows arrive for this long."""
    give_up_factor: float = 4.0
    """The run ends when all rows are visible, or after this many times `seconds`."""

    @property
    def give_up_ms(self) -> float:
        return self.seconds * 1000 * self.give_up_factor

    def under(self, policy: PolicyName, order: str) -> World:
        """The same world under another policy and order; `fixed` and `slide` take the deadline of
        each query for their interval, as a user of a trigger would."""
        queries = []
        for query in self.queries:
            deadline_ms = query.terms.deadline_ms
            terms = msgspec.structs.replace(
                query.terms, policy=policy, interval_ms=deadline_ms, slide_ms=deadline_ms
            )
            queries.append(replace(query, terms=terms))
        return replace(self, queries=tuple(queries), order=order)

    def load(self) -> float:
        """The share of the cores' time that the rows alone need, fixed costs left out."""
        row_ms = sum(
            query.traffic.rate * sum(stage.row_us for stage in query.cost.stages) / 1000
            for query in self.queries
        )
        return row_ms / (self.cluster.cores * 1000)
