"""Worlds for the command line: queries as in Linear Road, on a cluster of so many workers."""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock.admission.terms import PolicyName, Terms
from penstock.errors import BadCall
from penstock.simulate.traffic import Shape, Traffic
from penstock.simulate.world import Cluster, Cost, Luck, QueryModel, Stage, World

QUERIES_MAX = 2_000
CORES_MAX = 4_096
ROWS_SHARE_MIN = 0.02


@dataclass(frozen=True)
class Kind:
    """A kind of query: times as measured on two cores, a stage that reads and one that computes."""

    name: str
    planning_ms: float
    release_ms: float
    read_row_us: float
    compute_fixed_ms: float
    compute_row_us: float
    owes_empty: bool

    def cost(self, tasks: int, factor: float) -> Cost:
        """The cost with so many tasks in each stage; `factor` makes the query cheaper or dearer."""
        return Cost(
            stages=(
                Stage(tasks, READ_FIXED_MS, self.read_row_us * factor),
                Stage(tasks, self.compute_fixed_ms, self.compute_row_us * factor),
            ),
            planning_ms=self.planning_ms,
            release_ms=self.release_ms,
            owes_empty=self.owes_empty,
        )


READ_FIXED_MS = 8.0
KINDS = (
    Kind("lr_join", 70.0, 25.0, 15.0, 30.0, 150.0, owes_empty=False),
    Kind("lr_speed", 35.0, 25.0, 10.0, 20.0, 60.0, owes_empty=True),
    Kind("lr_count", 35.0, 25.0, 10.0, 20.0, 45.0, owes_empty=True),
)


@dataclass(frozen=True)
class Request:
    """The wishes of whoever simulates: sizes, traffic and luck."""

    workers: int = 2
    cores_per_worker: int = 4
    queries: int = 6
    tasks: int | None = None
    """In each stage; a worker's cores, if it is not said."""
    deadlines_ms: tuple[float, ...] = (1_000.0, 5_000.0)
    """Given to the queries in turn."""
    traffic: Shape = "random"
    rate: float | None = None
    """Rows per second and query; as many as keep the cores busy for `load`, if it is not said."""
    load: float = 0.6
    seconds: float = 60.0
    seed: int = 0
    stragglers: float = 0.0
    slow_workers: int = 0


def world_of(request: Request) -> World:
    """The world of a request, under policy `deadline` and order `edf`; refuses what cannot be."""
    cluster = Cluster(
        request.workers,
        request.cores_per_worker,
        Luck(straggler_share=request.stragglers, slow_workers=request.slow_workers),
    )
    if request.queries > QUERIES_MAX or cluster.cores > CORES_MAX:
        raise BadCall(
            f"{request.queries} queries on {cluster.cores} cores are too many to simulate; ask for "
            f"{QUERIES_MAX} queries and {CORES_MAX} cores at most",
            code="too_many",
        )
    costs = _costs(request)
    deadlines = [
        request.deadlines_ms[number % len(request.deadlines_ms)]
        for number in range(request.queries)
    ]
    rate = request.rate or _rate_for_load(request, cluster, costs, deadlines)
    queries = tuple(
        QueryModel(
            name=f"{KINDS[number % len(KINDS)].name}_{number}",
            cost=cost,
            terms=Terms(deadline_ms=deadline_ms, policy=PolicyName.DEADLINE),
            traffic=Traffic(rate, request.traffic),
        )
        for number, (cost, deadline_ms) in enumerate(zip(costs, deadlines, strict=True))
    )
    return World(request.seed, cluster, queries, "edf", request.seconds)


def _costs(request: Request) -> list[Cost]:
    tasks = request.tasks or request.cores_per_worker
    luck = random.Random(f"{request.seed} costs")
    return [
        KINDS[number % len(KINDS)].cost(tasks, luck.uniform(0.7, 1.3))
        for number in range(request.queries)
    ]


def _rate_for_load(
    request: Request, cluster: Cluster, costs: list[Cost], deadlines: list[float]
) -> float:
    """Rows per second and query that keep the cores busy for `load` of the time.

    The fixed part of batches is reckoned once in every deadline, which is about how often a policy
    that waits as long as it may cuts one.
    """
    fixed_cores = sum(
        cost.core_ms(0) * (2 if cost.owes_empty else 1) / deadline_ms
        for cost, deadline_ms in zip(costs, deadlines, strict=True)
    )
    share = request.load - fixed_cores / cluster.cores
    if share < ROWS_SHARE_MIN:
        raise BadCall(
            f"{request.queries} queries with these deadlines keep {fixed_cores:.1f} of "
            f"{cluster.cores} cores busy with the fixed cost of their batches alone, which leaves "
            f"no room for rows at a load of {request.load:.0%}; give fewer queries, longer "
            "deadlines, more cores or workers, or a --rate",
            code="no_room",
        )
    row_ms = sum(cost.core_ms(1) - cost.core_ms(0) for cost in costs)
    return share * cluster.cores * 1000 / row_ms
