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
             "commitTimeMs": 8, "customMetrics": {"rocksdbLoadLatency": 3, "rocksdbGetCount": 9}},
        ],
    },
    # addBatch begins 20 ms into the trigger; its job runs from 30 to 110.
    "jobs": [{"started_ms": BEGIN_MS + 30, "ended_ms": BEGIN_MS + 110}],
    "stages": [
        {"id": 0, "submitted_ms": BEGIN_MS + 31, "completed_ms": BEGIN_MS + 60},
        {"id": 1, "submitted_ms": BEGIN_MS + 62, "completed_ms": BEGIN_MS + 109},
    ],
    "tasks": [
        {"stage": 0, "launched_ms": BEGIN_MS + 36, "finished_ms": BEGIN_MS + 60,
         "deserialise_ms": 4, "run_ms": 17, "result_ms": 1, "shuffle_write_ns": 2_000_000,
         "metrics": {"waiting for pages of the log (ns)": 5_000_000}},
        {"stage": 1, "launched_ms": BEGIN_MS + 66, "finished_ms": BEGIN_MS + 108,
         "deserialise_ms": 3, "run_ms": 36, "result_ms": 1,
         "metrics": {"eviction scans": 1, "eviction scans skipped": 3}},
    ],
    "counters": {"compile ns": 1_500_000, "compilations": 2, "gc ms": 2, "requests": 9,
                 "request ns": 20_000_000, "broadcast bytes": 40_000, "append ns": 4_500_000},
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
        "prepare job": 10,
        "serialise tasks": 5 + 4,
        "schedule": 80 - (24 + 42) - 9,
        "tasks": 24 + 42,
        "after job": 10,
        "commit": 4,
        "other": 6,
    }
    assert sum(steps.wall_ms.values()) == steps.trigger_ms == 130
    assert steps.explained == pytest.approx(1 - 6 / 130)


def test_the_time_of_tasks_is_split_by_what_spark_and_we_measure_in_them() -> None:
    assert steps_of().task_ms == {
        "launch": (24 - 22) + (42 - 40),
        "deserialise": 7,
        "fetch": 5,
        "shuffle write": 2,
        "shuffle wait": 0,
        "state load": 3,
        "state updates": 20,
        "eviction": 6,
        "state commit": 8,
        "sink": 4.5,
        "rows": pytest.approx(53 - 48.5),
        "result": 2,
    }


def test_counters_are_those_of_the_jvm_and_the_scans_those_of_the_tasks() -> None:
    assert steps_of().counters == {
        "tasks": 2,
        "compilations": 2,
        "compile ms": 1.5,
        "gc ms": 2,
        "requests": 9,
        "request ms": 20,
        "broadcast bytes": 40_000,
        "eviction scans": 1,
        "eviction scans skipped": 3,
    }


def test_a_batch_without_a_job_has_none_of_its_steps() -> None:
    steps = steps_of(jobs=[], stages=[], tasks=[])
    assert steps.wall_ms["prepare job"] == 100
    assert "tasks" not in steps.wall_ms
    assert sum(steps.wall_ms.values()) == 130


def test_a_phase_that_spark_adds_shows_under_its_own_name() -> None:
    progress = RECORD["progress"]
    assert isinstance(progress, dict)
    durations = {**progress["durationMs"], "newPhase": 3}
    steps = steps_of(progress={**progress, "durationMs": durations})
    assert steps.wall_ms["newPhase"] == 3
    assert steps.wall_ms["other"] == 3


def test_what_overlaps_is_counted_once() -> None:
    assert covered_ms([(0, 10), (5, 12), (20, 30), (21, 22)], (2, 25)) == 10 + 5
    assert covered_ms([], (0, 9)) == 0
