"""Puts the answer of a run before the oracle, wherever its rows are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import msgspec
import pyarrow as pa

from penstock.client import Client
from penstock.errors import BadCall
from penstock.model.ddl import parse_ddl
from penstock_lab import oracle
from penstock_lab.experiment.files import FilesPast
from penstock_lab.experiment.query_sets import query_set_of
from penstock_lab.queries import Query
from penstock_lab.workloads.ads import Ads, AdsOptions
from penstock_lab.workloads.load import WORKLOADS


class ComparedRows(msgspec.Struct, frozen=True):
    """The numbers of rows compared and of rows that differ, and the first of those as sentences."""

    rows_checked: int
    rows_different: int
    first: tuple[str, ...] = ()


Check: TypeAlias = Callable[
    [Client | None, Query, Mapping[str, str], Mapping[str, str], Path], ComparedRows
]
"""Compares everything a query has committed; the query must have stopped. See `with_oracle`."""


def with_oracle(
    client: Client | None,
    query: Query,
    ids: Mapping[str, str],
    streams: Mapping[str, str],
    folder: Path,
    generator: Mapping[str, Any] = MappingProxyType({}),
) -> ComparedRows:
    """Every committed batch against DuckDB. Without a client the rows are in files.

    `generator` has the options that ads were made with, where they are not the usual ones.
    """
    named: Mapping[str, str] | None = streams
    if client is None:
        # It answers the questions that the oracle asks of a client, and no others.
        client, named = cast(Client, FilesPast(folder, query, _schemas(query))), None
    checked = oracle.check(query, client, ids, streams=named, tables=tables(query, generator))
    if not sum(checked.batches.values()):
        raise BadCall(f"{query.name} has committed nothing to check", code="nothing_committed")
    if not checked.rows:
        raise BadCall(f"of what {query.name} wrote nothing was compared", code="nothing_compared")
    shown = tuple(str(difference) for difference in checked.differences)
    return ComparedRows(checked.rows, checked.different, shown)


def tables(
    query: Query, generator: Mapping[str, Any] = MappingProxyType({}), seed: int = 7
) -> dict[str, Any]:
    """The tables that an answer is made of besides the streams."""
    if query.family != "ysb":
        return {}
    return {"campaigns": pa.Table.from_batches([Ads(AdsOptions(**generator), seed).campaigns()])}


def _schemas(query: Query) -> dict[str, pa.Schema]:
    workload = WORKLOADS[query_set_of(query.name).workload]
    written = {stage.name: parse_ddl(stage.columns) for stage in query.stages}
    return {**{name: workload.stream_schema(name) for name in query.inputs}, **written}
