"""Batches that are planned with their cut: sizes by substream go in, plans come with answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.admission import batch_runner
from penstock.admission.batch_question import BatchQuestion, LogInput, OutsideInput
from penstock.admission.batch_runner import BatchAdmissionRunner
from penstock.admission.hold import Held
from penstock.admission.offer import CutsBy, Waiting
from penstock.admission.question import Input
from penstock.admission.runner import AdmissionRunner
from penstock.admission.terms import PolicyName, Terms
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.devices.plan import pipeline_problem
from penstock.errors import BadCall
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.decide.need import need_stream
from penstock.log.reading.substream_sizes import COMMITS_MAX, SubstreamSizes, substream_sizes
from penstock.model.device_plans import BatchPlan, BatchToPlan, PipelineBody, PlanReport
from penstock.model.ids import Lsn, StreamName
from penstock.model.requests import BatchReport
from penstock.testing import ManualClock
from support.device_worlds import CPU_MACHINE, pipeline_of
from support.log.drafts import draft, make, rows, rows_payload

S = StreamName("s")
PIPELINE = pipeline_of("filter", "aggregate")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "log")
    log.run(make(S, substreams=3))
    yield log
    log.close()


class NotedPlanner:
    """A planner that notes the order of what it is asked."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.batches: list[BatchToPlan] = []
        self.reports: list[BatchReport] = []

    def problem(self, pipeline: PipelineBody) -> str | None:
        return pipeline_problem(pipeline)

    def plan(self, query: str, pipeline: PipelineBody, batch: BatchToPlan) -> BatchPlan:
        self.story.append(f"plan {query}")
        self.batches.append(batch)
        return BatchPlan("panes", "a test")

    def heard(self, query: str, pipeline: PipelineBody, reports: Sequence[BatchReport]) -> None:
        self.story.append(f"heard {len(reports)}")
        self.reports += reports

    def tune(self, query: str) -> None:
        self.story.append(f"tune {query}")


class FailingPlanner(NotedPlanner):
    """A planner with a bug in all it does."""

    def problem(self, pipeline: PipelineBody) -> str | None:
        raise KeyError("problem")

    def plan(self, query: str, pipeline: PipelineBody, batch: BatchToPlan) -> BatchPlan:
        raise ZeroDivisionError("plan")

    def heard(self, query: str, pipeline: PipelineBody, reports: Sequence[BatchReport]) -> None:
        raise KeyError("heard")

    def tune(self, query: str) -> None:
        raise KeyError("tune")


def runner_on(
    log: EmbeddedLog, planner: NotedPlanner | None, clock: Clock = SYSTEM_CLOCK
) -> BatchAdmissionRunner:
    held = Held()
    simple = AdmissionRunner(log, held, clock)
    return BatchAdmissionRunner(log, held, clock, 1, simple.hold_input, planner)


def asked(pipeline: PipelineBody | None, **more: Any) -> BatchQuestion:
    inputs = more.pop("inputs", (LogInput(0, Input(S, Lsn(0))),))
    terms = more.pop("terms", Terms(policy=PolicyName.ASAP))
    return BatchQuestion("q", "app", 2, inputs, terms, pipeline=pipeline, **more)


def run(steps: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(steps, 60))


def test_a_cut_is_answered_with_its_plan_and_a_wait_is_not(log: EmbeddedLog) -> None:
    async def steps() -> None:
        planner = NotedPlanner()
        runner = runner_on(log, planner)
        assert (await runner.ask(asked(PIPELINE))).plan is None
        log.run(rows(draft(0, 1, 2), draft(2, 3)))
        answer = await runner.ask(asked(PIPELINE))
        assert answer.plan == BatchPlan("panes", "a test")
        (batch,) = planner.batches
        assert (batch.cut, batch.rows, batch.cores, batch.spare_ms) == (answer.cut, 3, 2, None)
        assert batch.bytes_by_task == (len(rows_payload(1, 2)), len(rows_payload(3)))

    run(steps())


def test_without_a_pipeline_or_a_planner_an_answer_is_as_before(log: EmbeddedLog) -> None:
    async def steps() -> None:
        planner = NotedPlanner()
        log.run(rows(draft(0, 1)))
        assert (await runner_on(log, planner).ask(asked(None))).plan is None
        assert planner.story == []
        assert (await runner_on(log, None).ask(asked(PIPELINE))).plan is None

    run(steps())


def test_a_planner_that_fails_costs_no_answer_and_is_said_once(
    log: EmbeddedLog, caplog: pytest.LogCaptureFixture
) -> None:
    async def steps() -> None:
        runner = runner_on(log, FailingPlanner())
        report = BatchReport(7, visible_ms=9.0, plan=PlanReport("panes", 5.0, 1, 10, 1))
        after = Lsn(0)
        for number in range(3):
            log.run(rows(draft(0, number)))
            inputs = (LogInput(0, Input(S, after)),)
            answer = await runner.ask(asked(PIPELINE, inputs=inputs, reports=(report,)))
            await asyncio.sleep(0)
            assert answer.cut is not None
            assert answer.plan is None
            assert answer.inputs[0].end is not None
            after = answer.inputs[0].end

    run(steps())
    assert caplog.text.count("planning its batches fails, which is a bug in Penstock") == 1


def test_sizes_that_cannot_be_found_cost_no_answer(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(batch_runner, "planned_sizes", fails)

    async def steps() -> None:
        planner = NotedPlanner()
        log.run(rows(draft(0, 1)))
        answer = await runner_on(log, planner).ask(asked(PIPELINE))
        assert (answer.cut, answer.plan, planner.batches) == (1, None, [])

    run(steps())


def test_the_look_for_sizes_counts_as_planning(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()

    def slow(*_: object) -> SubstreamSizes:
        clock.turn(7.0)
        return SubstreamSizes(1, (8,))

    monkeypatch.setattr(batch_runner, "planned_sizes", slow)

    async def steps() -> None:
        runner = runner_on(log, NotedPlanner(), clock)
        log.run(rows(draft(0, 1)))
        answer = await runner.ask(asked(PIPELINE))
        assert answer.plan is not None
        assert runner.books.named("q").book.totals.planning_ms == pytest.approx(7.0)

    run(steps())


def test_what_the_driver_took_to_carry_a_plan_out_counts_as_planning(log: EmbeddedLog) -> None:
    async def steps() -> None:
        runner = runner_on(log, NotedPlanner(), ManualClock())
        log.run(rows(draft(0, 1)))
        ran = PlanReport("panes", 5.0, 1, 10, 1, rule_ms=3.0)
        reports = BatchReport(7, visible_ms=9.0, plan=ran), BatchReport(8, visible_ms=9.0)
        # When this one was visible no marker tells any more: its cut is gone.
        expired = BatchReport(9, plan=ran)
        for _ in range(2):  # a driver that got no answer sends its reports again
            await runner.ask(asked(PIPELINE, reports=(*reports, expired)))
        assert runner.books.named("q").book.totals.planning_ms == pytest.approx(6.0)

    run(steps())


def test_a_batch_names_the_run_that_it_is_of(log: EmbeddedLog) -> None:
    async def steps() -> None:
        planner = NotedPlanner()
        runner = runner_on(log, planner)
        log.run(rows(draft(0, 1)))
        for application in ("app", "app", "later"):
            await runner.ask(replace(asked(PIPELINE), application=application))
        first, same, other = (batch.run for batch in planner.batches)
        assert first == same != other

    run(steps())


def test_reports_are_learned_from_after_the_answer(log: EmbeddedLog) -> None:
    async def steps() -> None:
        planner = NotedPlanner()
        runner = runner_on(log, planner)
        log.run(rows(draft(0, 1)))
        report = BatchReport(7, visible_ms=9.0, plan=PlanReport("panes", 5.0, 1, 10, 1))
        await runner.ask(asked(PIPELINE, reports=(report,), is_first=True))
        assert planner.story == ["heard 1", "plan q"]
        await asyncio.sleep(0)
        assert planner.story[2:] == ["tune q"]
        assert planner.reports == [report]
        # Both count as planning, against the time of batches.
        assert runner.books.named("q").book.totals.planning_ms > 0

    run(steps())


def test_a_probe_may_take_what_the_deadline_is_expected_to_leave(log: EmbeddedLog) -> None:
    async def steps() -> None:
        planner = NotedPlanner()
        runner = runner_on(log, planner)
        log.run(rows(draft(0, 1)))
        terms = Terms(60_000.0, PolicyName.ASAP, slide_ms=500.0)
        reports = tuple(BatchReport(n, rows=1, visible_ms=100.0) for n in range(900, 910))
        answer = await runner.ask(asked(PIPELINE, terms=terms, reports=reports))
        (batch,) = planner.batches
        assert answer.left_ms is not None
        assert answer.predicted_ms is not None
        assert batch.spare_ms == pytest.approx(answer.left_ms - answer.predicted_ms)
        assert batch.slide_ms == 500.0

    run(steps())


def test_before_anything_is_predicted_there_is_nothing_to_spare(log: EmbeddedLog) -> None:
    async def steps() -> None:
        planner = NotedPlanner()
        log.run(rows(draft(0, 1)))
        terms = Terms(60_000.0, PolicyName.ASAP)
        await runner_on(log, planner).ask(asked(PIPELINE, terms=terms))
        assert planner.batches[0].spare_ms == 0.0

    run(steps())


def test_bytes_of_a_source_outside_the_log_are_divided_over_the_cores(log: EmbeddedLog) -> None:
    async def steps() -> None:
        planner = NotedPlanner()
        waiting = Waiting(0, 50, 1_000, None, 5.0, CutsBy.ROWS)
        await runner_on(log, planner).ask(asked(PIPELINE, inputs=(OutsideInput(waiting),)))
        assert (planner.batches[0].bytes_by_task, planner.batches[0].rows) == ((500, 500), 50)

    run(steps())


def test_a_forced_gpu_that_is_not_there_is_refused(log: EmbeddedLog) -> None:
    async def steps() -> None:
        forced = pipeline_of("sort", devices="gpu", machines=(CPU_MACHINE,))
        with pytest.raises(BadCall, match="no machine has a GPU") as refused:
            await runner_on(log, NotedPlanner()).ask(asked(forced))
        assert refused.value.code == "no_gpu"

    run(steps())


def test_sizes_of_a_batch_with_many_commits_are_those_of_the_first_ones_scaled(
    log: EmbeddedLog,
) -> None:
    for value in range(2 * COMMITS_MAX):
        log.run(rows(draft(value % 2, value)))
    with log.reading() as view:
        stream = need_stream(view, S)
        sizes = substream_sizes(view, stream, Lsn(0), view.next_lsn)
        nothing = substream_sizes(view, stream, Lsn(view.next_lsn - 1), view.next_lsn)
    each = COMMITS_MAX * len(rows_payload(1))
    assert sizes == (2 * COMMITS_MAX, (each, each))
    assert nothing == (0, ())
