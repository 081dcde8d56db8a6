"""Comparison of everything a query has committed with what DuckDB computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from penstock.client import Client
from penstock.errors import BadCall, Bug
from penstock_lab.oracle.answers import expected, truth
from penstock_lab.oracle.committed import Committed
from penstock_lab.oracle.compare import (
    DIFFERENCES_KEPT,
    Compared,
    Difference,
    compare,
    compare_view,
)
from penstock_lab.queries import Query

TRUTHS_MAX = 25
"""How many views of a chain of stages are compared with the input of its first stage."""


@dataclass
class CheckedStage:
    """Batches and rows of one stage that were compared."""

    batches: int = 0
    """Committed batches."""
    rows: int = 0
    """Rows written."""
    different: int = 0


@dataclass
class Checked:
    """Counts of a comparison, by stage, and what differs; the first rows are kept whole."""

    stages: dict[str, CheckedStage] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def batches(self) -> dict[str, int]:
        """Committed batches of each stage."""
        return {name: stage.batches for name, stage in self.stages.items()}

    @property
    def rows(self) -> int:
        """Rows written, of all stages."""
        return sum(stage.rows for stage in self.stages.values())

    @property
    def different(self) -> int:
        """Rows that differ, of all stages."""
        return sum(stage.different for stage in self.stages.values())

    @property
    def is_right(self) -> bool:
        return self.different == 0

    def add(self, stage: str, compared: Compared) -> None:
        self.stages[stage].different += compared.different
        self.differences.extend(compared.first[: DIFFERENCES_KEPT - len(self.differences)])

    def __str__(self) -> str:
        if self.is_right:
            return f"{self.rows} rows in {sum(self.batches.values())} batches, all right"
        sentences = "\n".join(str(difference) for difference in self.differences)
        return f"{self.different} of {self.rows} rows differ; the first:\n{sentences}"


def check(
    query: Query,
    client: Client,
    ids: Mapping[str, str],
    *,
    streams: Mapping[str, str] | None = None,
    tables: Mapping[str, pa.Table] | None = None,
    has_ended: bool = False,
) -> Checked:
    """Compare every committed batch of every stage with what DuckDB computes.

    `ids` has the Spark query id of each stage, `streams` what streams are called in the log where
    that is not their name in the query, `tables` what else the answer is made of: `campaigns` for
    ysb. The stages must have read their inputs from the earliest position on, and nothing else may
    have written to their outputs. May be called while they run: what was committed when each
    stage's markers were read is compared. With `has_ended` the stages have worked off their inputs
    and stopped: rows that no batch has read, or that lie past the last marker, differ too. Bug
    where DuckDB itself fails: then nothing is known of the answers.
    """
    missing = [stage.name for stage in query.stages if stage.name not in ids]
    if missing:
        raise BadCall(
            f"ids has no query for {', '.join(missing)}; give one for each stage of {query.name}",
            code="bad_request",
        )
    checked = Checked()
    past: list[Committed] = []
    try:
        # The last stage first: what it has read its predecessor had committed by then.
        for stage in reversed(query.stages):
            past.insert(0, Committed(client, stage, ids[stage.name], streams or {}, tables or {}))
        for committed in past:
            name = committed.stage.name
            checked.stages[name] = CheckedStage(len(committed.batches), _count(committed))
            checked.add(
                name, compare(committed.base, committed.stage, expected(query, committed.stage))
            )
            if has_ended:
                checked.add(name, _compare_ends(client, committed))
        if len(past) == 2 and not checked.different:
            _check_chain(query, past[0], past[1], streams or {}, checked)
    except duckdb.Error as error:
        sentence = str(error).partition("\n")[0]
        raise Bug(
            f"the answers of {query.name} were not checked, because DuckDB {duckdb.__version__} "
            f"failed: {sentence}",
            code="oracle_failed",
        ) from error
    finally:
        for committed in past:
            committed.close()
    return checked


def _compare_ends(client: Client, committed: Committed) -> Compared:
    """The rows past the last committed batch: a stage that has ended leaves none."""
    rows_past_end = {
        f"no batch has read from {stream}": rows for stream, rows in committed.unread(client)
    }
    rows_past_end["no marker names"] = committed.unmarked(client)
    differences = [
        Difference(committed.stage.name, None, None, kind, row)
        for kind, rows in rows_past_end.items()
        for row in rows.slice(0, DIFFERENCES_KEPT).to_pylist()
    ]
    rows_different = sum(rows.num_rows for rows in rows_past_end.values())
    return Compared(rows_different, tuple(differences[:DIFFERENCES_KEPT]))


def _check_chain(
    query: Query, first: Committed, last: Committed, streams: Mapping[str, str], checked: Checked
) -> None:
    """The last stage's view against the first stage's input, whatever passed between them.

    Each stage was compared with its own input before; this finds what both have wrong alike.
    """
    between = streams.get(first.stage.name, first.stage.name)
    step = max(1, len(last.batches) // TRUTHS_MAX)
    for progress in last.batches[::-step]:
        read_until = last.position(progress.batch, between)
        upto = max((b.batch for b in first.batches if b.lsn <= read_until), default=-1)
        _check_view(query, first, upto, last, checked, progress.batch)


def _check_view(
    query: Query,
    first: Committed,
    upto: int,
    last: Committed,
    checked: Checked,
    batch: int,
) -> None:
    """The last stage's view after a batch against what the first had read up to one of its own."""
    first.base.execute(f"set variable upto = {upto}")
    true_view: pa.Table = first.base.sql(truth(query)).to_arrow_table()
    compared = compare_view(last.base, last.stage, batch, true_view)
    checked.add(last.stage.name, compared)


def _count(committed: Committed) -> int:
    counted = committed.base.execute("select count(*) from written").fetchall()
    return int(counted[0][0])
