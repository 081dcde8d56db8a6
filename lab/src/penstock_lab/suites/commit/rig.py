"""What a system of this suite stands on: as the other suites', for cells in place of queries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

from penstock.testing import delayed_store
from penstock_lab.experiment import rig as base
from penstock_lab.experiment.checks import Check, with_oracle
from penstock_lab.experiment.children import Engine
from penstock_lab.experiment.driver import Drain, Setup, Start, Stop
from penstock_lab.experiment.plan import LOCAL, STORES
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.systems import CHANGELOG_KEY
from penstock_lab.suites.commit.batches import Timed
from penstock_lab.suites.commit.cells import Cell, Group
from penstock_lab.suites.commit.driver import StartCell
from penstock_lab.suites.commit.plan import Plan

MODULE = "penstock_lab.suites.commit.driver"
PROGRESS_KEPT = 5_000
"""How many batches of a query Spark is to remember: more than any run has."""


class Told(msgspec.Struct, frozen=True):
    """What the Spark process said about a query as it stopped."""

    batches: list[Timed] = []
    steps: dict[str, dict[str, float]] = {}
    rss_mb: float | None = None


class Bench(Protocol):
    """What cells are run on; `Rig` is the real one."""

    def measure(self, cell: Cell, measure_s: float, warm_up_s: float) -> tuple[Noted, Told]: ...


Open: TypeAlias = Callable[[Plan, Group, str, Path], contextlib.AbstractContextManager[Bench]]


def conf_of(*, has_changelog: bool) -> dict[str, str]:
    """Settings beyond a system's: every store at hand, every batch remembered, the changelog."""
    stores = [delayed_store(name) for name in STORES if name != LOCAL]
    return {
        **{key: value for store in stores for key, value in store.items()},
        "spark.sql.streaming.numRecentProgressUpdates": str(PROGRESS_KEPT),
        CHANGELOG_KEY: str(has_changelog).lower(),
    }


class Rig(base.Rig):
    """One server, one Spark process of one system; `measure` may be called again and again."""

    def __init__(
        self, plan: Plan, group: Group, name: str, folder: Path, check: Check = with_oracle
    ) -> None:
        self._whole = plan
        self._group = group
        self._cell = group.cells[0]
        self._told = Told()
        super().__init__(plan.of(self._cell, name), name, folder, check)

    def __enter__(self) -> Rig:
        super().__enter__()
        return self

    def measure(self, cell: Cell, measure_s: float, warm_up_s: float) -> tuple[Noted, Told]:
        """One run of a cell, as `run` makes it of a query."""
        self._cell, self._told = cell, Told()
        self._plan = self._whole.of(cell, self._system.name, measure_s=measure_s)
        noted = self.run(cell.query, warm_up_s)
        return noted, self._told

    def _start_engine(self) -> None:
        conf = conf_of(has_changelog=self._group.has_changelog)
        log = str(self._folder / "spark.log")
        setup = Setup(self._system.name, self._plan.cores, log, conf=conf)
        assert self._server is not None
        self._engine = Engine(setup, self._server.address, MODULE)
        self._engine.wait_ready()

    def _ask(self, command: Start | Drain | Stop, timeout_s: float) -> dict[str, Any]:
        if isinstance(command, Start):
            command = StartCell(
                **msgspec.structs.asdict(command),
                store=self._cell.store,
                every_s=self._cell.every_s,
            )
        said = super()._ask(command, timeout_s)
        if isinstance(command, Stop):
            self._told = msgspec.convert(
                {name: said[name] for name in ("batches", "steps", "rss_mb")}, Told
            )
        return said


def rigs(check: Check = with_oracle) -> Open:
    """Real ones; a test passes something else that opens."""
    return lambda plan, group, name, folder: Rig(plan, group, name, folder, check)
