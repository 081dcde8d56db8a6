"""Replay of recorded rows: the LightSaber samples of Linear Road and of Google's cluster trace.

The files are not part of Penstock. Give their path, or the folder of test data that holds
`lightsaber/`; `data_folder` reads it from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import BadCall, Damaged
from penstock_lab.workloads.cluster_trace import TASK_EVENTS
from penstock_lab.workloads.linear_road import POSITION_REPORTS
from penstock_lab.workloads.seeded import BASE_TIME_MS, Ints, numbers, require, stamps

DATA_VARIABLE = "PENSTOCK_TEST_DATA"
LINEAR_ROAD_FILE = Path("lightsaber") / "lrb-data-small-ht.txt"
CLUSTER_TRACE_FILE = Path("lightsaber") / "google-cluster-data.txt"


def data_folder(environment: Mapping[str, str]) -> Path | None:
    """The folder of test data that the environment names; None if it names none."""
    named = environment.get(DATA_VARIABLE)
    return Path(named) if named else None


def samples_folder(named: Path | None, checkout: Path) -> Path:
    """The folder that was named, else the one that stands beside the checkout, there or not."""
    return named or checkout.resolve().parent / "shared" / "data"


def missing(folder: Path) -> str | None:
    """A sentence that says which sample is not there; None if both are."""
    for file in (LINEAR_ROAD_FILE, CLUSTER_TRACE_FILE):
        if not (folder / file).is_file():
            return f"{folder} does not hold {file}; {DATA_VARIABLE} names the folder that does"
    return None


class Replay:
    """Recorded rows, numbered from 0, again and again.

    Row n is row `n % len` of the recording. Every time round adds the recording's last timestamp,
    so time never goes back; a recording that starts at 1 leaves no gap.
    """

    def __init__(self, recorded: pa.RecordBatch, base_time_ms: int = BASE_TIME_MS) -> None:
        require(recorded.num_rows > 0, "the recording has no rows; give one that has")
        self.schema = recorded.schema
        self.base_time_ms = base_time_ms
        self._recorded = recorded
        self._timestamps: Ints = recorded.column("timestamp").to_numpy()

    def __len__(self) -> int:
        """Rows of one time round."""
        return int(self._recorded.num_rows)

    def events(self, first: int, count: int) -> pa.RecordBatch:
        """Rows `first` to `first + count - 1`."""
        rounds, row = np.divmod(numbers(first, count), len(self))
        timestamp = self._timestamps[row] + rounds * self._timestamps[-1]
        rows = self._recorded.take(pa.array(row))
        return _timed(rows, timestamp, self.base_time_ms)


def linear_road(path: Path, base_time_ms: int = BASE_TIME_MS) -> Replay:
    """Position reports as `LinearRoad` makes them, from a file of lines of seven numbers."""
    return Replay(_read(path, POSITION_REPORTS, base_time_ms), base_time_ms)


def cluster_trace(path: Path, base_time_ms: int = BASE_TIME_MS) -> Replay:
    """Task events as `ClusterTrace` makes them, from a file of lines of twelve numbers."""
    return Replay(_read(path, TASK_EVENTS, base_time_ms), base_time_ms)


def _read(path: Path, schema: pa.Schema, base_time_ms: int) -> pa.RecordBatch:
    """The file's columns in the order of `schema`, whose last column is the event time."""
    recorded = [field for field in schema if field.name != "at"]
    row = np.dtype([(field.name, field.type.to_pandas_dtype()) for field in recorded])
    try:
        rows = np.loadtxt(path, dtype=row, ndmin=1)
    except FileNotFoundError:
        raise BadCall(
            f"{path} is not there; give the path of the sample", code="bad_request"
        ) from None
    except ValueError as error:
        raise Damaged(
            f"{path} is not a recording of {len(recorded)} numbers a line: {error}; fetch it again",
            code="damaged",
        ) from error
    timestamp: Ints = np.ascontiguousarray(rows["timestamp"])
    if (np.diff(timestamp) < 0).any():
        raise Damaged(f"{path} is not in order of time; fetch it again", code="damaged")
    columns = [pa.array(np.ascontiguousarray(rows[field.name])) for field in recorded]
    columns.append(stamps((base_time_ms + timestamp * 1_000) * 1_000))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _timed(rows: pa.RecordBatch, timestamp: Ints, base_time_ms: int) -> pa.RecordBatch:
    """The rows with other timestamps, and the event times that follow from them."""
    at = stamps((base_time_ms + timestamp * 1_000) * 1_000)
    names = rows.schema.names
    rows = rows.set_column(names.index("timestamp"), "timestamp", pa.array(timestamp))
    return rows.set_column(names.index("at"), "at", at)
