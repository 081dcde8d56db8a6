"""One execution of a suite: its steps in their order, its result shown, written and drawn."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Generic, TypeVar

from penstock_lab.experiment.result import Outlet, Result, result, write
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.turns import Step, Tell

P = TypeVar("P")
R = TypeVar("R")


class Trial(Generic[P, R]):
    """One execution of a plan. `records` grows as it goes and is whole after every run."""

    def __init__(self, suite: Suite[P, R], plan: P, folder: Path, tell: Tell) -> None:
        self.suite = suite
        self.plan = plan
        self.records: list[R] = []
        self._folder = folder
        self._tell = tell

    def execute(self) -> None:
        """Every step; an interrupt leaves no process behind, and `records` as far as it came."""
        place = Path(tempfile.mkdtemp(prefix=f"penstock-{self.suite.name}-", dir=self._folder))
        try:
            # Closing the generator closes what it has opened, also when a measurement is cut short.
            with contextlib.closing(self.suite.runs(self.plan, place, self._tell)) as steps:
                step = next(steps, None)
                while step is not None:
                    try:
                        step = steps.send(self._measured(step))
                    except StopIteration:
                        return
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _measured(self, step: Step[R]) -> R:
        if step.words is not None:
            self._tell(step.words)
        record = step.measure()
        self.records.append(record)
        return record

    def report(self, outlet: Outlet) -> Result:
        """Write the file in any case; show and draw where there is something to see."""
        suite, plan, records = self.suite, self.plan, self.records
        figures = suite.figures(plan, records)
        runs = [suite.in_file(record) for record in records]
        profile = None if suite.profile is None else suite.profile(plan, records)
        whole = result(suite.name, suite.settings(plan), runs, figures, profile)
        if outlet.json_file is not None:
            write(whole, outlet.json_file)
        if suite.is_shown(plan, records):
            suite.show(outlet.console, plan, records, figures)
            if outlet.plot_file is not None and suite.draw is not None:
                suite.draw(plan, records, figures, outlet.plot_file)
        return whole


def run(suite: Suite[P, R], plan: P, folder: Path, tell: Tell, outlet: Outlet) -> bool:
    """Run, show, write; whether every answer was right. Interrupted, it reports what there is by
    then and goes on being interrupted."""
    suite.require(plan)
    outlet.require()
    trial = Trial(suite, plan, folder, tell)
    try:
        trial.execute()
    finally:
        outlet.done()
        trial.report(outlet)
    return all(suite.is_right(record) for record in trial.records)
