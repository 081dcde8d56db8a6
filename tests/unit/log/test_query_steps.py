"""Resets and deletions of queries that have left much: in steps, each bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import Fenced, TryAgain
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import DeleteQuery, ResetQuery, Unfinished
from penstock.log.retention.collector import Collector
from penstock.model.ids import BatchId, Instance, QueryId
from support.log.drafts import draft, files, make, mark, pending, rows, stamp, take


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    opened = EmbeddedLog.open(tmp_path / "data")
    opened.run(make())
    yield opened
    invariants.check(opened)
    opened.close()


def run_many_batches(log: EmbeddedLog, batches: int) -> None:
    log.run(take("long"))
    for batch in range(batches):
        by = stamp("long", batch=batch)
        log.submit(pending(draft(0, batch), by=by))
        log.submit(pending(draft(1, batch), by=by))  # a failed attempt, named by no marker
        (offsets,) = log.run(files(f"offsets/{batch}", query="long", batch=batch))
        paths = {f"offsets/{batch}": offsets}
        log.run(mark(offsets - 2, query="long", batch=batch, files=paths))


@pytest.mark.parametrize("kind", ["reset", "delete"])
def test_a_query_with_many_markers_goes_in_bounded_steps_and_others_append_between(
    log: EmbeddedLog, kind: str
) -> None:
    run_many_batches(log, 40)
    operation = (
        ResetQuery(QueryId("long"), "anew", 7)
        if kind == "reset"
        else DeleteQuery(QueryId("long"), True, Instance(1), 7)
    )
    with log.reading() as view:
        before = len(list(view.tagged("t/long"))) + len(list(view.tagged("f/long")))
    steps = 0
    while isinstance(answer := log.run(operation), Unfinished):
        steps += 1
        assert answer.entries <= 7
        log.run(rows(draft(0, 1)))
        with pytest.raises(TryAgain, match="being removed, a few entries at a time"):
            log.run(take("long", "meanwhile"))
        with pytest.raises(Fenced):
            log.run(files("offsets/99", query="long", batch=99))
        invariants.check(log)
    assert steps >= before // 7
    with log.reading() as view:
        assert list(view.marks(QueryId("long"), BatchId(0))) == []
        assert list(view.tagged("f/long")) == []
        assert list(view.waiting(QueryId("long"))) == []
        assert len(list(view.tagged("t/long"))) == (1 if kind == "reset" else 0)
        assert len(list(view.tagged("s/s/0"))) >= 40, "what it made visible stays"
    taken = log.run(take("long", "next"))
    assert (taken.instance, taken.marker) == (3 if kind == "reset" else 2, None)
    (entry,) = log.run(pending(draft(0, 5), by=stamp("long", instance=taken.instance)))
    log.run(mark(entry, query="long", instance=taken.instance))
    invariants.check(log)


@pytest.mark.parametrize("remember", [True, False])
def test_steps_that_nobody_takes_any_more_are_taken_by_the_collector(
    log: EmbeddedLog, remember: bool
) -> None:
    run_many_batches(log, 20)
    assert isinstance(log.run(DeleteQuery(QueryId("long"), remember, None, 5)), Unfinished)
    Collector(log).collect()
    with log.reading() as view:
        assert view.query(QueryId("long")) is None
        assert list(view.tagged("t/long")) == []
    assert log.run(take("long", "next")).instance == (2 if remember else 1)
