"""The engine: makes a world, runs it to its end and counts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from penstock.simulate.admitting import Admission, Admits
from penstock.simulate.cores import Cores, Order
from penstock.simulate.events import Events
from penstock.simulate.ordering import order_named
from penstock.simulate.outcome import Outcome, QueryOutcome, latencies_of
from penstock.simulate.stream_query import StreamQuery
from penstock.simulate.traffic import draw_arrivals
from penstock.simulate.world import World


@dataclass(frozen=True)
class Parts:
    """The deciding parts of a world: those of the server, unless somebody wants to try others."""

    admission: Callable[[int, str], Admits] = Admission
    """Made for a number of cores and the name of an order."""
    order: Callable[[str], Order] = order_named


class Ground:
    """The parts of a world that its queries share."""

    def __init__(self, world: World, parts: Parts) -> None:
        self.events = Events()
        self.admission = parts.admission(world.cluster.cores, world.order)
        self.handover_ms = world.cluster.handover_ms
        self.spread = world.cluster.luck.spread
        self.submissions = count()
        self.jobs = count()
        self.cores = Cores(
            world.cluster,
            parts.order(world.order),
            self.events,
            random.Random(f"{world.seed} stragglers"),
        )


def simulate(world: World, parts: Parts | None = None) -> Outcome:
    """Run the world until all its rows are visible, or it is given up."""
    ground = Ground(world, parts or Parts())
    queries = []
    for number, model in enumerate(world.queries):
        # Traffic is the same whatever policy runs, so that policies can be compared.
        traffic_luck = random.Random(f"{world.seed} traffic {number}")
        arrivals = draw_arrivals(model.traffic, world.seconds, traffic_luck)
        luck = random.Random(f"{world.seed} times {number}")
        queries.append(StreamQuery(number, model, arrivals, ground, luck))
    ground.admission.wake = lambda number: ground.events.after(0.0, queries[number].look_again)
    for query in queries:
        query.ask(is_first=True)
    ground.events.run(world.give_up_ms)
    return _outcome(world, ground, queries)


def _outcome(world: World, ground: Ground, queries: list[StreamQuery]) -> Outcome:
    batches = sorted(
        (batch for query in queries for batch in query.batches),
        key=lambda batch: (batch.cut_at_ms, batch.query),
    )
    ended_at_ms = max(
        (batch.visible_at_ms or world.give_up_ms for batch in batches), default=world.give_up_ms
    )
    use = ground.cores.use
    return Outcome(
        queries=tuple(_query_outcome(query, ground) for query in queries),
        batches=tuple(batches),
        busy_share=use.busy_ms / (world.cluster.cores * ended_at_ms),
        tasks=use.tasks,
        ended_at_ms=ended_at_ms,
        asked=ground.admission.asked,
    )


def _query_outcome(query: StreamQuery, ground: Ground) -> QueryOutcome:
    arrivals, deadline_ms = query.arrivals, query.model.terms.deadline_ms
    latencies = latencies_of(query.batches, arrivals.at_ms, arrivals.rows)
    rows = sum(arrivals.rows)
    never = rows - int(latencies.rows.sum())
    late = 0
    if deadline_ms is not None:
        late = int(latencies.rows[latencies.ms > deadline_ms].sum())
    with_data = [batch for batch in query.batches if batch.has_data]
    return QueryOutcome(
        name=query.model.name,
        deadline_ms=deadline_ms,
        latencies=latencies,
        rows=rows,
        rows_never_visible=never,
        rows_missed=late + never,
        batches=len(with_data),
        batches_without_data=len(query.batches) - len(with_data),
        batch_ms=sum(batch.visible_ms or 0.0 for batch in with_data),
        longest_hold_ms=query.longest_hold_ms,
        longest_wait_for_cores_ms=ground.cores.use.waits_by_query.get(query.number, 0.0),
    )
