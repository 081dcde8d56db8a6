"""The ledger of a batch: its steps add up, and what they do not explain shows."""

from __future__ import annotations

import msgspec
import pytest

from penstock.observe.batch_ledger import BatchSteps, covered_ms, ledgers

BEGIN_MS = 1_000_000.0
RECORD = {
    "progress": {
        "id": "q", "batchId": 7, "numInputRows": 5_000,
        "timestamp": "1970-01-01T00:16:40.000Z",
        "durationMs": {
            "latestOffset": 5, "walCommit": 2, "getBatch": 1, "queryPlanning": 12, "addBatch": 100,
            "commitOffsets": 4, "triggerExecution": 130,
        },
        "stateOperators": [
            {"operatorName": "stateStoreSave", "allUpdatesTimeMs": 20, "allRemovalsTimeMs": 6,
             "commitTimeMs": 8, "customMetrics": {"rocksdbLoadLatencyMs": 3, "rocksdbGetCount": 9}},
        ],
    },
    # The plan is ready 20 ms into the trigger, its job runs from 30 to 110.
    "planned_ms": BEGIN_MS + 20,
    "execution_started_ms": BEGIN_MS + 23,
    "execution_ended_ms": BEGIN_MS + 114,
    "jobs": [{"started_ms": BEGIN_MS + 30, "ended_ms": BEGIN_MS + 110}],
    "stages": [
        {"id": 0, "submitted_ms": BEGIN_MS + 31, "completed_ms": BEGIN_MS + 60},
        {"id": 1, "submitted_ms": BEGIN_MS + 62, "completed_ms": BEGIN_MS + 109},
    ],
    "tasks": [
        {"stage": 0, "launched_ms": BEGIN_MS + 36, "finished_ms": BEGIN_MS + 60,
         "deserialise_ms": 4, "run_ms": 17, "result_ms": 1, "shuffle_write_ns": 2_000_000,
         "metrics": {"waiting for pages of the log (ns)": 5_000_000,
                     "before the log is read (ns)": 6_000_000,
                     "reading rows of the log (ns)": 11_000_000}},
        {"stage": 1, "launched_ms": BEGIN_MS + 66, "finished_ms": BEGIN_MS + 108,
         "deserialise_ms": 3, "run_ms": 36, "result_ms": 1,
         "metrics": {"eviction scans": 1, "eviction scans skipped": 3, "time to update": 16,
                     "time to remove": 6, "time to commit changes": 4}},
    ],
    "counters": {"compile ns": 1_500_000, "compilations": 2, "gc ms": 2, "requests": 9,
                 "request ns": 20_000_000, "broadcast bytes": 40_000, "task bytes": 30_000,
                 "append ns": 4_500_000,
                 "sink open ns": 5_000_000, "sink rows ns": 25_000_000},
}  # fmt: skip


def steps_of(**changed: object) -> BatchSteps:
    (steps,) = ledgers(msgspec.json.encode([{**RECORD, **changed}]))
    return steps


def test_the_steps_of_the_stream_s_thread_add_up_to_the_whole_batch() -> None:
    steps = steps_of()
    assert steps.wall_ms == {
        "admission": 5,
        "offsets": 2,
        "get batch": 1,
        "planning": 12,
        "describe plan": 3,
        "build job": 7,
        "schedule": 1 + 2,
        "serialise tasks": 5 + 4,
        "tasks": 24 + 42,
        "results": 0 + 1 + 1,
        "end job": 4,
        "commit": 4,
        "other": 12,
    }
    assert sum(steps.wall_ms.values()) == steps.trigger_ms == 130


def test_the_time_of_tasks_is_split_by_what_spark_and_we_measure_in_them() -> None:
    assert steps_of().task_ms == {
        "hand over": 0,
        "report": 0,
        "launch": (24 - 22) + (42 - 40),
        "deserialise": 7,
        # Spark counts reading the plan as deserialising.
        "open": (6 - 4) + (5 - 3),
        "read": 11,
        "rows": 25,
        "fetch": 5,
        "shuffle write": 2,
        "shuffle wait": 0,
        "state load": 3,
        "state updates": 20,
        "eviction": 6,
        "state commit": 8,
        "sink": 4.5,
        "unmeasured": pytest.approx((17 - 2 - 11) + (36 - 2 - 25 - 4.5)),
        "result": 2,
    }


def test_what_was_not_measured_is_not_explained_in_jobs_and_in_tasks() -> None:
    steps = steps_of()
    left_in_tasks = (4 + 4 + 4.5) / (24 + 42)
    assert steps.unmeasured_ms == pytest.approx(12 + left_in_tasks * 66)
    assert steps.explained == pytest.approx(1 - steps.unmeasured_ms / 130)


def test_the_way_of_a_task_to_its_executor_and_back_is_measured_where_both_ends_are_stamped() -> (
    None
):
    #  launched 0   began 3 (1 of 4 reading the plan before it)   ended 38   finished 40
    #  3 + 4 reading the plan + 30 run + 1 result + 2 back = 40, less what is in two of them
    (known,) = _with_stamps(began_ms=BEGIN_MS + 3, ended_ms=BEGIN_MS + 38)
    assert (known.task_ms["hand over"], known.task_ms["report"]) == (3, 2)
    assert known.task_ms["launch"] == 40 - 2 - 30 - 1 - 4
    (unknown,) = _with_stamps()
    assert unknown.task_ms["launch"] == 40 - 30 - 1 - 4
    assert known.explained > unknown.explained


def _with_stamps(**stamps: float) -> list[BatchSteps]:
    times = {"deserialise_ms": 4, "run_ms": 30, "result_ms": 1}
    task = {"stage": 0, "launched_ms": BEGIN_MS, "finished_ms": BEGIN_MS + 40, **times, **stamps}
    return ledgers(msgspec.json.encode([{**RECORD, "tasks": [task]}]))


@pytest.mark.parametrize(
    ("key", "step", "took_ms"),
    [("planned_ms", "describe plan", 3), ("execution_ended_ms", "end job", 4)],
)
def test_a_step_whose_end_spark_has_not_stamped_is_left_over(
    key: str, step: str, took_ms: float
) -> None:
    known, unknown = steps_of(), steps_of(**{key: None})
    assert unknown.wall_ms[step] == 0
    assert unknown.wall_ms["other"] == known.wall_ms["other"] + took_ms


def test_of_a_stage_that_neither_reads_nor_writes_the_log_only_state_is_timed() -> None:
    counters = {"append ns": 0, "sink rows ns": 0, "sink open ns": 0}
    steps = steps_of(counters=counters)
    assert steps.task_ms["unmeasured"] == pytest.approx((17 - 2 - 11) + (36 - 16 - 6 - 4))
    assert steps.explained < steps_of().explained


def test_a_gap_between_two_tasks_of_a_stage_is_the_scheduler_s() -> None:
    later = {"stage": 0, "launched_ms": BEGIN_MS + 58, "finished_ms": BEGIN_MS + 60}
    tasks = RECORD["tasks"]
    assert isinstance(tasks, list)
    earlier = {**tasks[0], "finished_ms": BEGIN_MS + 50}
    steps = steps_of(tasks=[earlier, later, tasks[1]])
    assert steps.wall_ms["schedule"] == 1 + 2 + 8
    assert steps.wall_ms["tasks"] == 24 + 42 - 8


def test_counters_are_those_of_the_jvm_and_the_scans_those_of_the_tasks() -> None:
    assert steps_of().counters == {
        "tasks": 2,
        "compilations": 2,
        "compile ms": 1.5,
        "gc ms": 2,
        "requests": 9,
        "request ms": 20,
        "broadcast bytes": 40_000,
        "task bytes": 30_000,
        "eviction scans": 1,
        "eviction scans skipped": 3,
    }


def test_a_batch_without_a_job_has_none_of_its_steps() -> None:
    steps = steps_of(jobs=[], stages=[], tasks=[])
    assert "tasks" not in steps.wall_ms
    assert steps.wall_ms["other"] == 106
    assert steps.explained == pytest.approx(24 / 130)
    assert sum(steps.wall_ms.values()) == 130


def test_a_phase_that_spark_adds_shows_under_its_own_name() -> None:
    progress = RECORD["progress"]
    assert isinstance(progress, dict)
    durations = {**progress["durationMs"], "newPhase": 3}
    steps = steps_of(progress={**progress, "durationMs": durations})
    assert steps.wall_ms["newPhase"] == 3
    assert steps.wall_ms["other"] == 12 - 3


def test_what_overlaps_is_counted_once() -> None:
    assert covered_ms([(0, 10), (5, 12), (20, 30), (21, 22)], (2, 25)) == 10 + 5
    assert covered_ms([], (0, 9)) == 0
