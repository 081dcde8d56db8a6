"""The outside readers: of the log, and of what Spark's file sink says it has committed."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.client import Client
from penstock_lab.experiment.files import FilesPast, micros
from penstock_lab.experiment.outside_reader import FolderObserver, LogObserver, sighting, sink_files
from penstock_lab.experiment.query_sets import Window
from penstock_lab.queries import named
from penstock_lab.workloads.load import WORKLOADS

STAMP = pa.timestamp("us", "UTC")


def stamps(*micros: int, unit: str = "us") -> pa.Array:
    scale = {"us": 1, "ns": 1_000}[unit]
    return pa.array(np.array(micros, np.int64) * scale).cast(pa.timestamp(unit, "UTC"))


def commit(folder: Path, batch: int, files: list[Path], name: str | None = None) -> None:
    metadata = folder / "_spark_metadata"
    metadata.mkdir(parents=True, exist_ok=True)
    lines = ["v1", *(json.dumps({"path": f"file://{file}", "action": "add"}) for file in files)]
    part = metadata / f".{batch}.part"
    part.write_text("\n".join(lines))
    part.rename(metadata / (name or str(batch)))


def rows_file(folder: Path, name: str, *sent_us: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"sent_at": stamps(*sent_us, unit="ns")}), folder / name)
    return folder / name


def test_a_window_s_close_is_kept_with_its_row() -> None:
    rows = pa.table({"ends_at": stamps(5_000_000), "sent_at": stamps(7)})
    window_sighting = sighting(rows, 99, Window("ends_at", 4_000))
    assert window_sighting.sent_us.tolist() == [7]
    assert window_sighting.closed_us is not None
    assert window_sighting.closed_us.tolist() == [9_000_000]


def test_files_are_seen_once_the_sink_names_them_and_each_once(tmp_path: Path) -> None:
    first, second = rows_file(tmp_path, "a.parquet", 1, 2), rows_file(tmp_path, "b.parquet", 3)
    rows_file(tmp_path, "never-committed.parquet", 4)
    commit(tmp_path, 0, [first])
    observer = FolderObserver(tmp_path, None)
    observer.start()
    try:
        assert observer.wait_rows(2, 10)
        # Every tenth entry of the sink's log repeats what came before.
        commit(tmp_path, 1, [first, second], "1.compact")
        assert observer.wait_rows(3, 10)
    finally:
        observer.stop()
    assert observer.rows == 3
    assert [seen_batch.sent_us.tolist() for seen_batch in observer.seen] == [[1, 2], [3]]


def test_a_batch_that_is_not_committed_has_no_files(tmp_path: Path) -> None:
    assert sink_files(tmp_path, 0) is None
    commit(tmp_path, 0, [])
    assert sink_files(tmp_path, 0) == []


def test_rows_of_the_log_are_seen_from_when_the_observer_is_there(client: Client) -> None:
    client.create("observed", "n bigint, sent_at timestamp", substreams=1)
    client.append("observed", pa.table({"n": [0], "sent_at": stamps(1)}))
    observer = LogObserver(client, "observed", None)
    observer.start()
    try:
        threading.Event().wait(0.05)
        client.append("observed", pa.table({"n": [1, 2], "sent_at": stamps(5, 6)}))
        assert observer.wait_rows(2, 10)
    finally:
        observer.stop()
    assert np.concatenate([seen_batch.sent_us for seen_batch in observer.seen]).tolist() == [5, 6]


def test_what_was_read_from_files_is_told_batch_by_batch(tmp_path: Path) -> None:
    # Batch 0 read one file, batch 1 two more, batch 2 nothing new.
    checkpoint = tmp_path / "checkpoints" / "q1"
    for part in ("sources/0", "offsets", "commits"):
        (checkpoint / part).mkdir(parents=True)
    inputs = [rows_file(tmp_path / "rows" / "bids", f"{n}.parquet", n) for n in range(3)]
    for entry, files in enumerate([inputs[:1], inputs[1:]]):
        lines = [json.dumps({"path": f"file://{file}", "batchId": entry}) for file in files]
        (checkpoint / "sources" / "0" / str(entry)).write_text("\n".join(["v1", *lines]))
    outputs = [rows_file(tmp_path / "rows" / "q1", f"{n}.parquet", n) for n in range(2)]
    for batch, offset in enumerate([0, 1, 1]):
        text = f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{offset}}}'
        (checkpoint / "offsets" / str(batch)).write_text(text)
        (checkpoint / "commits" / str(batch)).write_text("v1\n{}")
        commit(tmp_path / "rows" / "q1", batch, outputs[batch : batch + 1])
    schema = WORKLOADS["nexmark"].stream_schema("bids")
    past = FilesPast(tmp_path, named("q1"), {"bids": schema, "q1": schema})
    assert [marker.positions for marker in past.markers("any")] == [
        {"bids": 1},
        {"bids": 2},
        {"bids": 2},
    ]
    assert past.read("bids", 0, 1)["sent_at"].cast(pa.int64()).to_pylist() == [0]
    assert past.read("bids", 1, 2)["sent_at"].cast(pa.int64()).to_pylist() == [1, 2]
    assert past.read("bids", 2, 2).num_rows == 0
    assert past.read("q1", 0, 3)["sent_at"].cast(pa.int64()).to_pylist() == [0, 1]


def test_nanoseconds_of_parquet_become_the_log_s_microseconds() -> None:
    assert micros(pa.table({"at": stamps(7, unit="ns")})).schema.field("at").type == STAMP
