"""A measured run: read from a file, fitted, and compared with the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from penstock.admission.terms import PolicyName, Terms
from penstock.errors import BadCall
from penstock.simulate.compare import CLOSE, compare
from penstock.simulate.engine import simulate
from penstock.simulate.measured import (
    MeasuredBatch,
    MeasuredQuery,
    MeasuredRun,
    appends_of,
    fit,
    read_measured,
)
from penstock.simulate.outcome import BatchRecord
from penstock.simulate.traffic import Traffic
from penstock.simulate.world import Cluster, Cost, Luck, QueryModel, Stage, World

RUNS = Path(__file__).parents[2] / "simulation" / "deadlines" / "measured"
EPOCH_MS = 1_700_000_000_000.0


def world() -> World:
    """Two queries on two cores, one of them with twice the cost."""
    queries = tuple(
        QueryModel(
            name,
            Cost((Stage(2, 10.0, row_us), Stage(2, 15.0, row_us)), 40.0, 20.0),
            Terms(policy=PolicyName.FIXED, interval_ms=1_000.0, deadline_ms=1_500.0),
            Traffic(2_000.0, "random"),
        )
        for name, row_us in (("cheap", 20.0), ("dear", 40.0))
    )
    return World(5, Cluster(1, 2, Luck(spread=0.05)), queries, "fair", 40.0)


def measured_batch(batch: BatchRecord) -> MeasuredBatch:
    assert batch.visible_at_ms is not None
    return MeasuredBatch(
        EPOCH_MS + batch.cut_at_ms,
        EPOCH_MS + batch.visible_at_ms,
        batch.rows,
        batch.planning_ms,
        batch.core_ms,
        batch.queued_ms,
    )


def measured_run(of_world: World) -> MeasuredRun:
    """A run as if Spark had made it: of a world that the comparison does not know."""
    outcome = simulate(of_world)
    queries = []
    for number, model in enumerate(of_world.queries):
        batches = [measured_batch(each) for each in outcome.batches if each.query == number]
        terms = model.terms
        queries.append(
            MeasuredQuery(
                model.name, terms.policy, tuple(batches), terms.deadline_ms, terms.interval_ms
            )
        )
    return MeasuredRun(2, of_world.order, tuple(queries), "a run")


def test_a_run_is_read_as_it_was_written_alone_or_in_a_benchmark_s_file(tmp_path: Path) -> None:
    run = measured_run(world())
    alone, of_bench = tmp_path / "alone.json", tmp_path / "bench.json"
    alone.write_bytes(msgspec.json.encode(run))
    runs = [{"measured_run": run}, {"verdict": "failed"}]
    of_bench.write_bytes(msgspec.json.encode({"suite": "deadlines", "runs": runs}))
    assert read_measured(alone) == read_measured(of_bench) == [run]


@pytest.mark.parametrize("text", ["no json", "{}", '{"suite": "deadlines", "runs": []}', "[]"])
def test_a_file_without_a_measured_run_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadCall, match="holds no measured run"):
        read_measured(file)


def test_a_run_that_is_too_short_is_refused_by_name(tmp_path: Path) -> None:
    run = measured_run(replace(world(), seconds=3.0))
    file = tmp_path / "run.json"
    file.write_bytes(msgspec.json.encode(run))
    with pytest.raises(BadCall, match="fewer than 8 batches with rows of cheap"):
        read_measured(file)


def test_the_fit_finds_the_cost_that_batches_were_made_with() -> None:
    run = measured_run(world())
    for query, model in zip(run.queries, world().queries, strict=True):
        cost = fit(query, query.batches, run.cores).cost
        for rows in (0, 1_000, 3_000):
            assert cost.core_ms(rows) == pytest.approx(model.cost.core_ms(rows), rel=0.15)
        assert cost.planning_ms == pytest.approx(40.0, rel=0.1)


def test_appends_explain_every_row_of_every_batch() -> None:
    query = measured_run(world()).queries[0]
    with_rows = [batch for batch in query.batches if batch.rows]
    start_ms = with_rows[0].cut_at_ms - 200
    appends = appends_of(query, start_ms)
    assert [sum(part.rows) for part in appends] == [batch.rows for batch in with_rows]
    for part, batch in zip(appends, with_rows, strict=True):
        assert max(part.at_ms) < batch.cut_at_ms - start_ms


def test_a_run_that_the_model_made_itself_is_close_and_another_is_far_off() -> None:
    run = measured_run(world())
    comparison = compare(run)
    assert comparison.is_close, comparison.sentence
    for query in comparison.queries:
        assert query.simulated.mean_ms == pytest.approx(query.measured.mean_ms, rel=0.2)
        assert query.simulated.p95_ms == pytest.approx(query.measured.p95_ms, rel=0.2)

    def later(batch: MeasuredBatch, number: int) -> MeasuredBatch:
        """The second half takes three times as long as the first, which was fitted to."""
        took_ms = batch.took_ms * (3 if number >= 20 else 1)
        return msgspec.structs.replace(batch, visible_at_ms=batch.cut_at_ms + took_ms)

    slower = msgspec.structs.replace(
        run,
        queries=tuple(
            msgspec.structs.replace(
                query,
                batches=tuple(later(batch, place) for place, batch in enumerate(query.batches)),
            )
            for query in run.queries
        ),
    )
    assert not compare(slower).is_close


@pytest.mark.parametrize(
    ("file", "error_max", "batch_error_max"),
    [
        ("fifo_every_3_s.json", 0.15, CLOSE),
        ("fair_back_to_back.json", 0.15, CLOSE),
        # Its batches took half as long in the second half as in the first, which was fitted to, so
        # the median batch of one query is off by 0.72.
        ("edf_deadlines.json", 0.35, 0.8),
    ],
)
def test_the_model_is_close_to_runs_that_spark_made(
    file: str, error_max: float, batch_error_max: float
) -> None:
    """Three queries at once on two cores, measured by Spark's progress and its event log."""
    (run,) = read_measured(RUNS / file)
    comparison = compare(run)
    assert len(comparison.queries) == 3
    for query in comparison.queries:
        assert query.simulated.p50_ms == pytest.approx(query.measured.p50_ms, rel=error_max)
        assert query.simulated.p95_ms == pytest.approx(query.measured.p95_ms, rel=error_max)
        assert query.simulated.mean_ms == pytest.approx(query.measured.mean_ms, rel=error_max)
        assert query.batch_error <= batch_error_max, comparison.sentence
