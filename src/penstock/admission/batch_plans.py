"""Plans of batches that are cut, from a planner that may fail: a batch that gets no plan runs by
panes, so that no answer is lost for the sake of one."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from penstock.admission.batch_question import BatchQuestion
from penstock.admission.cuts import Batch, Totals
from penstock.admission.decision import Cut
from penstock.admission.planning import BatchPlanner
from penstock.log.reading.substream_sizes import SubstreamSizes
from penstock.model.device_plans import BatchPlan, BatchToPlan

T = TypeVar("T")
_LOG = logging.getLogger("penstock.admission")
FAILED_MAX = 1_000
"""Queries whose planning failed that are known; at the bound the first is forgotten, and its next
failure is said again."""


class BatchPlans:
    """Asks the planner of a server, if it has one, and counts the time that takes as planning."""

    def __init__(self, planner: BatchPlanner | None, now_ms: Callable[[], float]) -> None:
        self._planner = planner
        self._now_ms = now_ms
        self._failed: OrderedDict[str, None] = OrderedDict()

    def problem(self, question: BatchQuestion) -> str | None:
        """A sentence that says why the pipeline of a question cannot run as it must."""
        planner, pipeline = self._planner, question.pipeline
        if planner is None or pipeline is None:
            return None
        return self._guarded(question.query, lambda: planner.problem(pipeline))

    def heard(self, question: BatchQuestion) -> bool:
        """Have the planner note the reports of a question; True if there is something to learn."""
        planner, pipeline, query = self._planner, question.pipeline, question.query
        if planner is None or pipeline is None:
            return False
        self._guarded(query, lambda: planner.heard(query, pipeline, question.reports))
        return True

    def learn(self, query: str, totals: Totals) -> None:
        """Have the planner learn from the reports that it has noted."""
        planner = self._planner
        if planner is not None:
            self._counted(query, totals, lambda: planner.tune(query))

    def sizes(
        self,
        question: BatchQuestion,
        totals: Totals,
        look_up: Callable[[], SubstreamSizes | None],
    ) -> SubstreamSizes | None:
        """The sizes that a batch is planned by, as a look into the log finds them; None if it is
        not planned."""
        if self._planner is None or question.pipeline is None:
            return None
        return self._counted(question.query, totals, look_up)

    def plan(
        self,
        question: BatchQuestion,
        totals: Totals,
        cut: int,
        batch: Batch,
        decision: Cut,
        sizes: SubstreamSizes | None,
    ) -> BatchPlan | None:
        """The plan of a batch whose question names a pipeline; a probe may take what is expected to
        be left of its deadline."""
        planner, pipeline, query = self._planner, question.pipeline, question.query
        if planner is None or pipeline is None or sizes is None:
            return None
        spare_ms = None
        if decision.left_ms is not None:
            spare_ms = decision.left_ms - (decision.predicted_ms or decision.left_ms)
        to_plan = BatchToPlan(
            cut,
            self._now_ms(),
            sizes.bytes_by_substream,
            sizes.rows,
            question.cores,
            batch.oldest_age_ms,
            spare_ms,
            question.terms.slide_ms,
            _run_of(question),
        )
        return self._counted(query, totals, lambda: planner.plan(query, pipeline, to_plan))

    def _counted(self, query: str, totals: Totals, act: Callable[[], T]) -> T | None:
        """Guarded, and its time added to that of planning."""
        began_ms = self._now_ms()
        made = self._guarded(query, act)
        totals.planning_ms += self._now_ms() - began_ms
        return made

    def _guarded(self, query: str, act: Callable[[], T]) -> T | None:
        """The result of an act, or None if it fails, which is said once for each query."""
        try:
            return act()
        except Exception:
            is_known = query in self._failed
            self._failed[query] = None
            if len(self._failed) > FAILED_MAX:
                self._failed.popitem(last=False)
            if not is_known:
                _LOG.warning(
                    "query %s: planning its batches fails, which is a bug in Penstock; those that "
                    "get no plan run by panes, and nothing else changes; report this with what "
                    "follows (it is said once for each query)",
                    query,
                    exc_info=True,
                )
            return None


def _run_of(question: BatchQuestion) -> str:
    instance = "" if question.run is None else str(question.run.instance)
    return f"{question.application} {instance}"
