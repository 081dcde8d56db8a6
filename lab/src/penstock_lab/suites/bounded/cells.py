"""Cells of the bounded suite: two queries at a rate, a fixed trigger of 10 s and a policy each."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import BadCall
from penstock_lab.experiment.together import Part

STATIC = "static"
TRIGGER_S = 10.0
PAPER_RATE = 1_000
POLICIES = {
    # The query, and the policy of its windows: the paper's LR1S and LR1T.
    "lr_join_30_5": ("slide", {"policy": "slide", "slide": "5s"}),
    "lr_join_30_tumbling": ("running-mean", {"policy": "running-mean"}),
}
AROUND_S = 12.0
START_S = 14.0


class Cell(msgspec.Struct, frozen=True):
    """A query at a rate."""

    query: str
    rate: int

    @property
    def name(self) -> str:
        return self.query if self.rate == PAPER_RATE else f"{self.query}@{self.rate}"

    @property
    def words(self) -> str:
        return f"{self.query} at {self.rate:,}/s"


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    cells: tuple[Cell, ...]
    measure_s: float
    warm_up_s: float
    past_queries: tuple[str, ...]
    """Of which the rate is looked for at which the fixed trigger's latency grows."""
    past_s: float
    """How long a run of that search is measured."""
    rate_first: int = 8_000
    rate_max: int = 64_000
    tries_max: int = 4
    cores: int = 2

    @property
    def steps(self) -> int:
        return 2 * len(self.cells) + len(self.past_queries) * (self.tries_max + 1)

    @property
    def minutes(self) -> float:
        """About how long it takes."""
        long_s = 2 * len(self.cells) * (self.warm_up_s + self.measure_s + TRIGGER_S + AROUND_S)
        tried_s = (self.tries_max + 1) * (self.warm_up_s + self.past_s + TRIGGER_S + AROUND_S)
        return (START_S + long_s + len(self.past_queries) * tried_s) / 60


def plan_of(
    *,
    quick: bool = False,
    queries: Sequence[str] = (),
    rate: int | None = None,
    seconds: float | None = None,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not."""
    unknown = [query for query in queries if query not in POLICIES]
    if unknown:
        raise BadCall(
            f"bounded has no query {', '.join(unknown)}; it has {', '.join(POLICIES)}",
            code="unknown_query",
        )
    wanted = tuple(dict.fromkeys(queries)) or tuple(POLICIES)
    return Plan(
        tuple(Cell(query, rate or PAPER_RATE) for query in wanted),
        measure_s=seconds or (180.0 if quick else 1_200.0),
        warm_up_s=20.0 if quick else 60.0,
        past_queries=() if seconds else wanted[:1] if quick else wanted,
        past_s=45.0 if quick else 180.0,
    )


def part_of(query: str, system: str) -> Part:
    if system == STATIC:
        return Part(query, TRIGGER_S)
    return Part(query, options=dict(POLICIES[query][1]))
