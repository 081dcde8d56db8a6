"""Where batch time goes: parts of a batch, batches without rows and overlap, and late batches."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.record import Kind, Run
from penstock_lab.experiment.together import QueryRun
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.experiment.visible_rows import Span
from penstock_lab.suites.deadlines.cells import Cell
from penstock_lab.suites.deadlines.plans import plan_of
from penstock_lab.suites.deadlines.profile import for_file, profile
from penstock_lab.suites.deadlines.profile_tables import LATE_SHOWN, show_profile
from penstock_lab.suites.deadlines.record import Record

PLAN = plan_of(quick=True)
SPEED = "lr_speed_30_1"


def span(batch: int, cut_ms: float, took_ms: float, rows: int, **more: float) -> Span:
    return Span(batch, cut_ms, cut_ms + took_ms, rows, **more)  # type: ignore[arg-type]


def record(
    mode: str,
    spans: Sequence[Span],
    *,
    measured: Sequence[Span] | None = None,
    kind: Kind = "compared",
    repeat: int = 0,
    is_ok: bool = True,
) -> Record:
    verdict = Verdict("ok") if is_ok else Verdict("stalled", ("why not",))
    run = Run(SPEED, mode, repeat, verdict, 1_800)
    inside = list(spans if measured is None else measured)
    query_run = QueryRun(run, spans=list(spans), measured=inside)
    return Record(Cell("all", 1.0, "high"), run, kind, {SPEED: query_run})


def test_a_batch_is_planning_queue_tasks_over_all_cores_and_a_rest() -> None:
    # 0     20        50                          200         400   two cores
    # | plan | queued  | tasks: 300 ms of core-time | the rest |
    each = [span(0, 0, 400, 100, planning_ms=20, queued_ms=30, tasks_ms=300)]
    (times,) = profile(PLAN, [record("db-edf", each)]).batches
    assert (times.query, times.deadline_s, times.traffic, times.mode) == (
        *(SPEED, 1.0, "high", "db-edf"),
    )
    assert (times.rows, times.took_ms, times.planning_ms, times.queued_ms, times.core_ms) == (
        *(100, 400, 20, 30, 300),
    )
    assert times.rest_ms == 400 - 20 - 30 - 300 / 2


def test_tasks_that_had_less_than_all_cores_leave_no_rest_below_zero() -> None:
    each = [span(0, 0, 100, 1, planning_ms=60, queued_ms=60)]
    assert profile(PLAN, [record("db-edf", each)]).batches[0].rest_ms == 0.0


def test_batches_without_rows_have_a_share_of_batch_time_and_enter_no_median() -> None:
    each = [span(0, 0, 300, 100), span(1, 300, 100, 0), span(2, 400, 400, 50), span(3, 800, 200, 0)]
    (times,) = profile(PLAN, [record("db-edf", each)]).batches
    assert (times.with_rows, times.without_rows) == (2, 2)
    assert times.without_rows_share == pytest.approx(0.3)
    assert (times.rows, times.took_ms) == (50, 300)
    assert times.overlap == pytest.approx(1.0)


def test_batches_that_overlap_within_a_run_have_more_batch_time_than_there_was() -> None:
    # run 1      0    100   200   300
    # batch 0    [----------]
    # batch 1          [----------]      400 ms of batch time in 300
    # run 2, at the same moments: 200 ms in 200
    first = record("db-edf", [span(0, 0, 200, 9), span(1, 100, 200, 9)])
    second = record("db-edf", [span(0, 0, 200, 9)], repeat=1)
    (times,) = profile(PLAN, [first, second]).batches
    assert times.overlap == pytest.approx(600 / 500)


def test_modes_stand_in_the_order_of_the_plan_and_runs_that_do_not_count_in_none() -> None:
    each = [span(0, 0, 400, 100)]
    records = [
        record("asap", each),
        record("db-edf", each),
        record("sb-fifo", each, is_ok=False),
        record("sb-fair", [span(0, 0, 400, 0)]),
    ]
    assert [times.mode for times in profile(PLAN, records).batches] == ["db-edf", "asap"]


LATE = [
    span(7, 0, 200, 10, oldest_ms=1_500),
    span(8, 500, 100, 0),
    span(9, 700, 600, 40, oldest_ms=1_400, queued_ms=250, predicted_ms=150),
    span(10, 1_400, 100, 40, oldest_ms=1_000),
    span(11, 1_600, 500, 40, oldest_ms=1_200),
]


def test_a_late_batch_has_its_age_at_the_cut_its_prediction_and_what_went_before() -> None:
    # Batch 7 was cut before the measured stretch; 10 is visible just at its deadline of 1 s.
    spare = record("db-edf", LATE, measured=LATE[1:], kind="spare")
    made = profile(PLAN, [spare])
    assert made.batches == [], "it is not one of the compared runs"
    assert made.with_spare == 3
    after_empty, after_rows = made.late
    assert (after_empty.batch, after_empty.rows, after_empty.is_after_empty) == (9, 40, True)
    assert (after_empty.age_ms, after_empty.predicted_ms, after_empty.took_ms) == (800, 150, 600)
    assert (after_empty.queued_ms, after_empty.late_ms) == (250, 400)
    assert (after_rows.batch, after_rows.is_after_empty, after_rows.predicted_ms) == (
        *(11, False, None),
    )


def test_only_runs_with_spare_have_late_batches_and_only_those_that_count() -> None:
    records = [record("db-edf", LATE), record("db-edf", LATE, kind="spare", is_ok=False)]
    assert profile(PLAN, records).late == []


def shown(records: Sequence[Record], width: int) -> str:
    output = io.StringIO()
    show_profile(Console(file=output, width=width), profile(PLAN, records))
    return output.getvalue()


def test_a_narrow_terminal_shows_the_whole_table() -> None:
    each = [span(n, n * 1_000.0, 4_321, 12_345, queued_ms=1_234, tasks_ms=3_210) for n in range(99)]
    text = shown([record("db-edf", each), record("db-edf", LATE, kind="spare")], 80)
    assert "…" not in text
    assert "12345" in text
    assert "99+0" in text
    assert "3 of 4 batches late, 1 after one without rows" in text


def test_of_many_late_batches_the_latest_are_shown_and_the_others_counted() -> None:
    late = [span(n, n * 3_000.0, 100, 1, oldest_ms=2_000 + n) for n in range(LATE_SHOWN + 5)]
    text = shown([record("db-edf", late, kind="spare")], 100)
    assert "and 5 more" in text
    lines = [line.split() for line in text.splitlines() if line.startswith(SPEED)]
    assert [int(words[-1]) for words in lines] == [1_016 - n for n in range(LATE_SHOWN)]


def test_the_file_has_all_of_it_and_no_run_gives_an_empty_one() -> None:
    spare = record("db-edf", LATE, kind="spare", repeat=1)
    compared = record("db-edf", [span(0, 0, 400, 3, tasks_ms=1 / 3)])
    written = msgspec.json.decode(msgspec.json.encode(for_file(PLAN, [compared, spare])))
    assert written["with_spare"] == 4
    assert written["batches"][0]["core_ms"] == 0.333
    assert [(late["repeat"], late["batch"]) for late in written["late"]] == [
        (1, 7),
        (1, 9),
        (1, 11),
    ]
    assert for_file(PLAN, []) == {"batches": [], "late": [], "with_spare": 0}
    assert shown([], 80) == ""
