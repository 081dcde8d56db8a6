"""The protocols on Spark: the same queries of NEXMark, the sink's protocol a setting.

The log is the embedded one and the checkpoint location a local folder, so that what differs is how
often, and after what, a batch becomes visible.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from penstock.spark.server_process import OwnCoordinator
from penstock_lab.experiment.checks import with_oracle
from penstock_lab.experiment.children import Engine
from penstock_lab.experiment.driver import Setup
from penstock_lab.experiment.plan import LOCAL
from penstock_lab.experiment.report import Figure
from penstock_lab.experiment.systems import PROTOCOLS, system
from penstock_lab.percentiles import median
from penstock_lab.suites.commit import rig
from penstock_lab.suites.commit.cells import BACK_TO_BACK, Cell, Group
from penstock_lab.suites.commit.plan import Plan
from penstock_lab.suites.commit.record import Measured, for_file
from penstock_lab.suites.commit.rig import MODULE, Open, conf_of

LEVEL = "spark"
INTERVALS_S = (BACK_TO_BACK, 0.5, 1.0)
"""The shortest interval that holds is none: the next batch begins when the one before is done."""
RATES = {"q4": 500, "q5": 2_500, "q8": 5_000}
SHORT_S = 5.0
"""As long as results of every query, which wait for their watermark, come more than once."""
# On a local store a run's other costs, and a process's to start, are less: seconds on quiet cores.
AROUND_S = 5.0
START_S = 9.0
COORDINATOR_KEY = "spark.penstock.coordinator.url"


def plan_of(*, quick: bool, protocols: Sequence[str] = (), queries: Sequence[str] = ()) -> Plan:
    names = tuple(name for name in PROTOCOLS if not protocols or name in protocols)
    cells = tuple(
        Cell(query, LOCAL, every_s, True, rate)
        for query, rate in RATES.items()
        if not queries or query in queries
        for every_s in INTERVALS_S
    )
    return Plan(
        (Group(names, cells),) if cells else (),
        repeats=1 if quick else 5,
        measure_s=SHORT_S if quick else 30.0,
        measure_batches=6 if quick else 60,
        warm_up_s=1.5 if quick else 3.0,
        first_warm_up_s=12.0 if quick else 30.0,
        measure_s_min=SHORT_S if quick else 0.0,
        around_s=AROUND_S,
        start_s=START_S,
    )


def settings(plan: Plan) -> dict[str, Any]:
    used = [name for group in plan.groups for name in group.systems]
    return {**msgspec.to_builtins(plan), "spark": {name: system(name).conf for name in used}}


class ProtocolRig(rig.Rig):
    """As a rig of the commit suite, with a coordinator where the protocol needs one."""

    _coordinator: OwnCoordinator | None = None

    def __exit__(self, *exc: Any) -> None:
        with contextlib.ExitStack() as closing:
            if self._coordinator is not None:
                closing.callback(self._coordinator.stop)
            super().__exit__(*exc)

    def _start_engine(self) -> None:
        assert self._server is not None  # it was started before the engine
        conf = conf_of(has_changelog=True)
        if self._system.name == "transaction":
            if self._coordinator is None:
                self._coordinator = OwnCoordinator(self._server.address)
            conf[COORDINATOR_KEY] = self._coordinator.url
        log = str(self._folder / "spark.log")
        setup = Setup(self._system.name, self._plan.cores, log, conf=conf)
        self._engine = Engine(setup, self._server.address, MODULE)
        self._engine.wait_ready()


def opening(
    plan: Plan, group: Group, name: str, folder: Path
) -> contextlib.AbstractContextManager[rig.Bench]:
    check = partial(with_oracle, shows_early=name == "unsafe")
    return ProtocolRig(plan, group, name, folder, check)


OPENING: Open = opening


def runs_for_file(runs: Sequence[Measured]) -> list[dict[str, Any]]:
    return [{"level": LEVEL, **for_file(one)} for one in runs]


def name_of(cell: Cell) -> str:
    return f"{LEVEL}.{cell.query.upper()}.{cell.every_s * 1000:.0f}ms"


def figures(plan: Plan, runs: Sequence[Measured]) -> list[Figure]:
    """Latencies of every cell and protocol; a run that does not count enters none of them."""
    found = []
    for group in plan.groups:
        for cell in group.cells:
            for name in group.systems:
                counted = [
                    one.run.latency
                    for one in runs
                    if (one.cell, one.system) == (cell, name)
                    and one.is_counted
                    and one.run.latency is not None
                ]
                for key, values in (
                    ("p50_ms", [one.p50 for one in counted]),
                    ("p99_ms", [one.p99 for one in counted]),
                ):
                    middle = median(values)
                    if middle is not None:
                        what = f"event-time latency of visible results, {cell.words}"
                        at = f"{name_of(cell)}.{name}.{key}"
                        found.append(Figure(at, "ms", what, middle, tuple(values)))
    return found
