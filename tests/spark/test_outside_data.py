"""The queries on events and answers that others wrote: RisingWave's NEXMark cases.

The folder is named by PENSTOCK_TEST_DATA, or stands beside the repository.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock_lab import oracle, queries
from penstock_lab.measure.feeding import SUBSTREAMS, create_outputs
from penstock_lab.queries import Query, Stage
from penstock_lab.workloads import nexmark
from penstock_lab.workloads.replay import data_folder
from penstock_lab.workloads.seeded import STAMP
from support.sources import ROOT

FINISH_S = 600
INPUTS = {
    "persons": ("person", nexmark.PERSONS),
    "auctions": ("auction", nexmark.AUCTIONS),
    "bids": ("bid", nexmark.BIDS),
}
TIMES = ("date_time", "expires", "sent_at")
# RisingWave's texts differ in these: a list of auctions, states in lower case, the lowest bid wins.
PARAMETERS: Mapping[str, dict[str, object]] = {
    "q2": {"auctions": (1007, 1020, 2001, 2019, 2087)},
    "q3": {"states": ("or", "id", "ca")},
    "q6": {"lowest": True},
}
NAMES = ("q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q18", "q19", "q20")

Row = dict[str, Any]


@dataclass(frozen=True)
class Outside:
    """Everything that was run, and what RisingWave says."""

    client: Client
    queries: Mapping[str, Query]
    streams: Mapping[str, str]
    ids: Mapping[str, str]
    expected: Mapping[str, list[str]]

    def rows(self, stage: str) -> list[Row]:
        rows: list[Row] = self.client.read(self.streams[stage]).to_pylist()
        return rows

    def view(self, stage: Stage) -> list[Row]:
        """The last row of every key."""
        last = {tuple(row[name] for name in stage.key): row for row in self.rows(stage.name)}
        return list(last.values())


@pytest.fixture(scope="module")
def folder() -> Path:
    folder_of_data = (
        data_folder(os.environ) or ROOT.parent / "shared" / "data"
    ) / "nexmark-risingwave"
    if not folder_of_data.is_dir():
        pytest.skip(
            f"skipped, because {folder_of_data} is not there; PENSTOCK_TEST_DATA names its parent"
        )
    return folder_of_data


@pytest.fixture(scope="module")
def outside(
    folder: Path, spark: SparkSession, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> Outside:
    checkpoints = tmp_path_factory.mktemp("outside")
    chosen = {name: queries.named(name, **PARAMETERS.get(name, {})) for name in NAMES}
    stages = [stage for query in chosen.values() for stage in query.stages]
    streams = {name: f"outside_{name}" for name in (*INPUTS, *(stage.name for stage in stages))}
    for name, (kind, schema) in INPUTS.items():
        rows = events(folder / f"events_{kind}.jsonl", schema)
        client.create(streams[name], rows.schema, substreams=SUBSTREAMS)
        client.append(streams[name], rows)
        # An event long after, in a commit of its own: it closes every window and auction.
        client.append(streams[name], long_after(rows))
    for query in chosen.values():
        create_outputs(client, query, streams)

    def start(stage: Stage) -> StreamingQuery:
        return queries.start_stage(
            spark, stage, checkpoints, streams=streams, rows_max=1, available_now=True
        )

    running: dict[str, StreamingQuery] = {}
    for number in range(2):
        of_this_turn = [q.stages[number] for q in chosen.values() if len(q.stages) > number]
        running |= {stage.name: start(stage) for stage in of_this_turn}
        for stage in of_this_turn:
            assert running[stage.name].awaitTermination(FINISH_S)
    cases = json.loads((folder / "expected.json").read_text())["queries"]
    expected = {
        name.split("_")[0]: [row for check in case["checks"] for row in check["rows_raw"]]
        for name, case in cases.items()
    }
    ids = {name: str(query.id) for name, query in running.items()}
    return Outside(client, chosen, streams, ids, expected)


def events(path: Path, schema: pa.Schema) -> pa.Table:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows):
        for name in ("date_time", "expires"):
            if name in row:
                row[name] = dt.datetime.fromisoformat(row[name]).replace(tzinfo=dt.UTC)
        row["sent_at"] = dt.datetime.fromtimestamp(1_800_000_000 + number, dt.UTC)
    return pa.Table.from_pylist(rows, schema=schema.append(pa.field("sent_at", STAMP)))


def long_after(rows: pa.Table) -> pa.Table:
    """A row like the last one, an hour later, of ids that no other row has."""
    row = rows.slice(rows.num_rows - 1).to_pylist()[0]
    for name in TIMES:
        if name in row:
            row[name] += dt.timedelta(hours=1)
    for name in ("id", "auction", "seller", "bidder"):
        if name in row:
            row[name] = 10**9 + 7
    row["category"] = 99
    row["state"] = "none"
    return pa.Table.from_pylist([row], schema=rows.schema)


def text(value: object) -> str:
    if isinstance(value, dt.datetime):
        whole = value.strftime("%Y-%m-%d %H:%M:%S")
        return f"{whole}.{value.microsecond // 1000:03d}" if value.microsecond else whole
    return str(value)


def lines(rows: list[Row], *columns: str) -> list[str]:
    """As RisingWave prints them, without the event long after."""
    kept = [row for row in rows if (10**9 + 7) not in row.values()]
    return [" ".join(text(row[name]) for name in columns) for row in kept]


def same(answer: list[str], expected: list[str], *, ordered: bool = False) -> None:
    """Equal but for the width of the space between two words."""
    ours, theirs = ([" ".join(line.split()) for line in side] for side in (answer, expected))
    assert ours == theirs if ordered else sorted(ours) == sorted(theirs)


BID = ("auction", "bidder", "price", "channel", "url", "date_time", "extra")
EXPANDED = (
    *("auction", "bidder", "price", "channel", "url", "bid_date_time", "bid_extra"),
    *("item_name", "description", "initial_bid", "reserve", "auction_date_time", "expires"),
    *("seller", "category", "auction_extra"),
)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("q1", ("auction", "bidder", "price", "date_time")),
        ("q2", ("auction", "price")),
        ("q3", ("name", "city", "state", "auction")),
        ("q5", ("auction", "bids")),
        ("q7", ("auction", "price", "bidder", "date_time")),
        ("q8", ("id", "name", "starts_at")),
        ("q20", EXPANDED),
    ],
)
def test_rows_that_all_count_are_theirs(
    outside: Outside, name: str, columns: tuple[str, ...]
) -> None:
    same(lines(outside.rows(name), *columns), outside.expected[name])


def test_the_last_bids_are_theirs(outside: Outside) -> None:
    view = outside.view(outside.queries["q18"].stages[0])
    same(lines(view, *BID), outside.expected["q18"])


def test_the_top_ten_are_theirs_in_their_order(outside: Outside) -> None:
    view = outside.view(outside.queries["q19"].stages[0])
    view.sort(key=lambda row: (row["auction"], -row["price"], row["bidder"]))
    same(lines(view, *BID, "rank"), outside.expected["q19"], ordered=True)


def test_the_averages_by_category_are_theirs(outside: Outside) -> None:
    view = outside.view(outside.queries["q4"].stages[-1])
    theirs = {int(line.split()[0]): float(line.split()[1]) for line in outside.expected["q4"]}
    assert {row["category"]: row["average"] for row in view} == theirs


def test_the_averages_by_seller_are_theirs(
    outside: Outside, spark: SparkSession, tmp_path: Path
) -> None:
    """They have a row for every winner; we have it for a while, if winners come one at a time."""
    stage = outside.queries["q6"].stages[-1]
    theirs = sorted((int(a), float(b)) for a, b in (row.split() for row in outside.expected["q6"]))
    last_of_each = {row["seller"]: row["average"] for row in outside.view(stage)}
    assert set(last_of_each.items()) <= set(theirs)

    streams = {"q6_winners": "outside_winners_in_order", "q6": "outside_averages_in_order"}
    create_outputs(outside.client, outside.queries["q6"], streams)
    winners = outside.client.read(outside.streams["q6_winners"]).sort_by("date_time")
    for place in range(winners.num_rows):
        outside.client.append(streams["q6_winners"], winners.slice(place, 1))
    query = queries.start_stage(
        spark, stage, tmp_path, streams=streams, rows_max=1, available_now=True
    )
    assert query.awaitTermination(FINISH_S)
    averages = outside.client.read(streams["q6"]).to_pylist()
    assert sorted((row["seller"], row["average"]) for row in averages) == theirs


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_agrees_with_them(outside: Outside, name: str) -> None:
    checked = oracle.check(
        outside.queries[name], outside.client, outside.ids, streams=outside.streams
    )
    assert checked.is_right, str(checked)
    assert checked.rows > 0
