"""Modes of the deadlines suite: when batches are cut, in whose order tasks run, and in which
Spark process."""

from __future__ import annotations

import msgspec

from penstock_lab.experiment.systems import ONE_PATH
from penstock_lab.experiment.together import Part

BASELINES = ("sb-fifo", "sb-fair")
OURS = "db-edf"
HURRY = "asap"
QUICK_MODES = (*BASELINES, OURS, "db-rdas", HURRY)


class Mode(msgspec.Struct, frozen=True):
    """A mode: when batches are cut, and in whose order their tasks run."""

    name: str
    sentence: str
    process: str
    """The Spark process it runs in: what a session cannot change once it has started."""
    policy: str | None = None
    """None: Spark's trigger cuts."""
    is_timed: bool = True
    """Whether its trigger is the deadline, where no policy cuts."""
    has_pools: bool = False
    """Whether each query is put into a pool of its own."""

    @property
    def is_blind(self) -> bool:
        """Whether the mode knows of no deadline: one run is held against all of them."""
        return self.policy is None and not self.is_timed

    def part(self, query: str, deadline_s: float) -> Part:
        pool = query if self.has_pools else None
        if self.policy is None:
            return Part(query, deadline_s if self.is_timed else 0.0, pool=pool)
        options = {"deadline": f"{round(deadline_s * 1000)}ms", "policy": self.policy}
        if self.policy == "fixed":
            options["interval"] = options["deadline"]
        return Part(query, 0.0, options, pool)


FIFO = {"spark.scheduler.mode": "FIFO", "spark.penstock.schedule": "spark"}
PROCESSES: dict[str, tuple[str, dict[str, str]]] = {
    # The system it starts from, and how its scheduler is set.
    "fifo": ("penstock", {**FIFO, **ONE_PATH}),
    "fair": ("penstock", {**FIFO, "spark.scheduler.mode": "FAIR", **ONE_PATH}),
    # A session sets the mode that these need.
    "edf": ("penstock", {"spark.penstock.schedule": "edf", **ONE_PATH}),
    "rdas": ("penstock", {"spark.penstock.schedule": "rdas", **ONE_PATH}),
    "tuned": ("tuned", FIFO),
}
MODES = {
    mode.name: mode
    for mode in (
        Mode("sb-fifo", "trigger as long as the deadline, FIFO", "fifo"),
        Mode("sb-fair", "the same, FAIR, a pool for each query", "fair", has_pools=True),
        Mode("db-edf", "policy deadline, earliest deadline first", "edf", "deadline"),
        Mode("db-rdas", "policy deadline, cores shared by time left", "rdas", "deadline"),
        Mode("asap", "back to back, FAIR, a pool each", "fair", is_timed=False, has_pools=True),
        Mode("tuned", "Spark's own commit, trigger as long as the deadline, FIFO", "tuned"),
        Mode("db-fifo", "policy deadline alone, FIFO", "fifo", "deadline"),
        Mode("db-fair", "policy deadline alone, FAIR", "fair", "deadline", has_pools=True),
        Mode("sb-edf", "earliest deadline first alone, cut every deadline", "edf", "fixed"),
        Mode("sb-rdas", "cores by time left alone, cut every deadline", "rdas", "fixed"),
        Mode("zstream", "the paper's policy, earliest deadline first", "edf", "zstream"),
        Mode("auto", "policy auto, earliest deadline first", "edf", "auto"),
    )
}
