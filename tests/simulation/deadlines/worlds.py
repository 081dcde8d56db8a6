"""Worlds drawn from a seed: small clusters, a few queries, any traffic and luck."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from penstock.admission.terms import PolicyName, Terms
from penstock.simulate.ordering import ORDERS
from penstock.simulate.traffic import SHAPES, Recorded, Shape, Traffic
from penstock.simulate.world import NO_LUCK, Cluster, Cost, Luck, QueryModel, Stage, World

Maker: TypeAlias = Literal["any", "calm", "crowded", "beside", "at once"]
STEADY: tuple[Shape, ...] = ("constant", "random")
DEADLINES_MS = (500.0, 1_000.0, 2_000.0, 5_000.0)


def drawn_world(seed: int) -> World:
    """Any policy and order, also more work than the cores can do; some queries without deadline."""
    luck = random.Random(f"any {seed}")
    cluster = Cluster(
        luck.choice((1, 2, 3)),
        luck.choice((1, 2, 4)),
        Luck(
            spread=luck.choice((0.0, 0.1, 0.3)),
            straggler_share=luck.choice((0.0, 0.0, 0.02)),
            slow_workers=luck.choice((0, 0, 1)),
        ),
    )
    policy = luck.choice(tuple(PolicyName))
    models = [_model(number, luck, cluster) for number in range(luck.randint(1, 5))]
    if policy in (PolicyName.AUTO, PolicyName.ASAP) and luck.random() < 0.5:
        models[0] = replace(models[0], terms=Terms())
    load = luck.choice((0.2, 0.4, 0.6, 1.2))
    world = World(
        seed=seed,
        cluster=cluster,
        queries=tuple(_scaled(models, cluster, load)),
        order=luck.choice(ORDERS),
        seconds=luck.choice((3.0, 6.0)),
        give_up_factor=100.0,
    )
    return world.under(policy, world.order)


def calm_world(seed: int) -> World:
    """Deadlines that can be kept: the cores are half idle, and none is near what is needed."""
    luck = random.Random(f"calm {seed}")
    cluster = Cluster(luck.choice((1, 2)), luck.choice((2, 4)), Luck(spread=0.3))
    models = [_model(number, luck, cluster, STEADY) for number in range(luck.randint(2, 4))]
    queries = [
        replace(model, terms=Terms(deadline_ms=3 * needed_ms(model, cluster)))
        for model in _scaled(models, cluster, luck.uniform(0.1, 0.3))
    ]
    world = World(seed, cluster, tuple(queries), "edf", seconds=20.0)
    return world.under(PolicyName.DEADLINE, "edf")


def crowded_world(seed: int) -> World:
    """Queries that all want all cores, at the same time: whoever cuts as if alone is late."""
    luck = random.Random(f"crowded {seed}")
    cluster = Cluster(1, luck.choice((1, 2, 4)), Luck(spread=0.05))
    deadlines_ms = luck.choice(((1_000.0,), (1_000.0, 2_000.0), (1_000.0, 4_000.0)))
    models = [
        QueryModel(
            name=f"q{number}",
            cost=Cost(
                (Stage(cluster.cores, luck.uniform(2, 6), luck.uniform(20, 100)),),
                planning_ms=luck.uniform(5, 20),
                release_ms=luck.uniform(0, 20),
            ),
            terms=Terms(deadline_ms=deadlines_ms[number % len(deadlines_ms)]),
            traffic=Traffic(1.0, "constant"),
        )
        for number in range(luck.randint(4, 6))
    ]
    queries = tuple(_scaled(models, cluster, luck.uniform(0.4, 0.6)))
    return World(seed, cluster, queries, "edf", seconds=20.0).under(PolicyName.DEADLINE, "edf")


def world_beside_one_in_a_hurry(seed: int) -> World:
    """A query whose batches are mostly fixed cost, beside one whose deadline bears short tasks:
    in batches as small as its first ones it would fall behind for ever."""
    luck = random.Random(f"beside {seed}")
    fixed_ms, row_us = luck.uniform(18, 25), luck.uniform(40, 60)
    costs = {
        "hurry": Cost((Stage(2, 4.0, 20.0),), planning_ms=10.0, release_ms=5.0),
        "behind": Cost((Stage(8, fixed_ms, row_us),) * 2, planning_ms=40.0, release_ms=10.0),
    }
    deadlines_ms = {"hurry": luck.uniform(150, 250), "behind": 800.0}
    rates = {"hurry": 2_000.0, "behind": luck.uniform(15_000, 25_000)}
    queries = tuple(
        QueryModel(
            name, cost, Terms(deadline_ms=deadlines_ms[name]), Traffic(rates[name], "constant")
        )
        for name, cost in costs.items()
    )
    world = World(seed, Cluster(2, 4, Luck(spread=0.2)), queries, "edf", seconds=10.0)
    return world.under(PolicyName.DEADLINE, "edf")


def needed_ms(model: QueryModel, cluster: Cluster) -> float:
    """The shortest deadline that a query alone can keep at its rate.

    A row may come just after a cut: it waits for that batch, for the one without data that follows,
    and for its own; each pays the fixed cost, and rows take a share of the time that is left.
    """
    cost = model.cost
    batches = 3 if cost.owes_empty else 2
    row_ms = (cost.core_ms(1) - cost.core_ms(0)) / min(cost.stages[0].tasks, cluster.cores)
    # Random traffic has twice the mean for a second.
    busy = 2 * model.traffic.rate * row_ms / 1000
    return batches * cost.floor_ms(cluster.cores) / (1.0 - min(busy, 0.9))


def world_at_once(seed: int) -> World:
    """One core, and a batch of one task of every query at one moment, that some order gets done.

    Deadlines are those of the batches done one after the other in a drawn order, plus some slack:
    the earliest deadline first must meet all of them, by Jackson's rule.
    """
    luck = random.Random(f"at once {seed}")
    costs_ms = [luck.randint(1, 400) for _ in range(luck.randint(2, 12))]
    order = luck.sample(range(len(costs_ms)), len(costs_ms))
    slack_ms = luck.choice((0, 50, 500))
    deadlines_ms, done_ms = [0.0] * len(costs_ms), 0
    for number in order:
        done_ms += costs_ms[number]
        deadlines_ms[number] = float(done_ms + luck.randint(0, slack_ms))
    queries = tuple(
        QueryModel(
            name=f"q{number}",
            cost=Cost((Stage(1, float(cost_ms), 0.0),), planning_ms=0.0, release_ms=0.0),
            terms=Terms(deadline_ms=deadlines_ms[number]),
            traffic=Recorded((0.0,), (1,)),
        )
        for number, cost_ms in enumerate(costs_ms)
    )
    return World(seed, Cluster(1, 1, NO_LUCK), queries, "edf", seconds=60.0)


def _model(
    number: int, luck: random.Random, cluster: Cluster, shapes: tuple[Shape, ...] = SHAPES
) -> QueryModel:
    tasks = luck.randint(1, cluster.cores)
    stages = tuple(
        Stage(tasks, luck.uniform(2, 20), luck.uniform(10, 100)) for _ in range(luck.randint(1, 3))
    )
    return QueryModel(
        name=f"q{number}",
        cost=Cost(
            stages,
            planning_ms=luck.uniform(5, 60),
            release_ms=luck.uniform(0, 40),
            owes_empty=luck.random() < 0.5,
        ),
        terms=Terms(
            deadline_ms=luck.choice(DEADLINES_MS), importance=luck.choice((0.5, 1.0, 1.0, 2.0))
        ),
        traffic=Traffic(1.0, luck.choice(shapes)),
    )


def _scaled(models: list[QueryModel], cluster: Cluster, load: float) -> list[QueryModel]:
    """The same queries with rows that keep the cores busy for `load` of the time, in equal parts,
    as far as the tasks of a stage can use them. The fixed cost comes on top.
    """
    scaled = []
    for model in models:
        assert isinstance(model.traffic, Traffic)
        row_ms = model.cost.core_ms(1) - model.cost.core_ms(0)
        cores = min(cluster.cores / len(models), model.cost.stages[0].tasks)
        rate = load * cores * 1000 / row_ms
        scaled.append(replace(model, traffic=replace(model.traffic, rate=rate)))
    return scaled


MAKERS: dict[Maker, Callable[[int], World]] = {
    "any": drawn_world,
    "calm": calm_world,
    "crowded": crowded_world,
    "beside": world_beside_one_in_a_hurry,
    "at once": world_at_once,
}
