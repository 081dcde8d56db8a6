"""Plans that a test plays for the batches of a query, and what the query tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, cycle
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from support.servers.played_admission import PlayedAdmission, Question
from support.servers.processes import wait_until
from support.spark.admitted_queries import reports_sent

BYTES = 12_345


class PathsInTurn:
    """Plans one path after the other, of those that a question offers, and the devices in turn for
    its operations; keeps what it planned."""

    def __init__(self, paths: Sequence[str], devices: Sequence[str] = ("cpu",)) -> None:
        self._paths = paths
        self._devices = devices
        self._turns = count()
        self.planned: dict[int, str] = {}

    def __call__(self, question: Question, cut: int) -> dict[str, Any]:
        pipeline = question["pipeline"]
        wanted = self._paths[next(self._turns) % len(self._paths)]
        usual = "panes" if "panes" in pipeline["paths"] else "spark"
        path = wanted if wanted in pipeline["paths"] else usual
        self.planned[cut] = path
        operations = [
            {"kind": each["kind"], "device": device, "reason": "the test says so"}
            for each, device in zip(pipeline["operations"], cycle(self._devices), strict=False)
        ]
        return {
            "path": path,
            "reason": f"turn of {path}",
            "operations": operations if path == "columnar" else [],
            "bytes": BYTES,
        }


class ReportedPlans:
    """Reports of a query on its planned batches, by their cuts; called while the query still runs,
    it waits until all have come of the cuts `after` one: a run that was killed owes its last."""

    def __init__(self, admission: PlayedAdmission, plans: PathsInTurn, after: int = 0) -> None:
        self._admission = admission
        self._plans = plans
        self._after = after
        self.by_cut: dict[int, dict[str, Any]] = {}

    def __call__(self, query: StreamingQuery) -> None:
        wait_until(
            "planned batches are reported",
            lambda: query.exception() is not None or self._have_come(query),
        )
        assert query.exception() is None

    def _have_come(self, query: StreamingQuery) -> bool:
        reports = reports_sent(self._admission, query)
        self.by_cut = {report["cut"]: report["plan"] for report in reports if "plan" in report}
        awaited = {cut for cut in self._plans.planned if cut > self._after}
        return awaited <= self.by_cut.keys()

    @property
    def paths(self) -> dict[int, str]:
        """The path that each batch is reported to have taken."""
        return {cut: report["path"] for cut, report in self.by_cut.items()}
