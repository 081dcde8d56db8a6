"""The outside reader: sees a row when anyone else would, and notes when that was."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.client import Client
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.query_sets import Window
from penstock_lab.processes import thread_first_in_line
from penstock_lab.workloads.seeded import Ints

PAUSE_S = 0.02
LOOK_EVERY_S = 0.01
METADATA = "_spark_metadata"


def sighting(rows: pa.Table, seen_us: int, window: Window | None) -> Sighting:
    """The sighting that is kept of rows that were seen at one moment."""
    closed_us = None
    if window is not None:
        closed_us = _micros(rows[window.column]) + window.closes_after_ms * 1000
    return Sighting(seen_us, _micros(rows["sent_at"]), closed_us)


def _micros(column: pa.ChunkedArray) -> Ints:
    # Spark's Parquet files have nanoseconds, the log microseconds.
    micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return np.asarray(micros.to_numpy(), np.int64)


class Observer(ABC):
    """Follows one output on a thread of its own, from its start to `stop`."""

    def __init__(self, window: Window | None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._window = window
        self._clock = clock
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seen: list[Sighting] = []
        self.rows = 0
        self.error: PenstockError | None = None

    @abstractmethod
    def _new_rows(self) -> Iterator[pa.Table]:
        """Rows as they become visible, until `_stopped`."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns within about a second; what was seen stays."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait_rows(self, rows: int, timeout_s: float) -> bool:
        """Block until that many rows were seen; False if they were not in time."""
        until = self._clock.monotonic_s() + timeout_s
        while self.rows < rows and self.error is None and self._clock.monotonic_s() < until:
            self._clock.sleep(PAUSE_S)
        return self.rows >= rows

    def _run(self) -> None:
        # A reader on a busy machine must not add its own wait to what it measures.
        thread_first_in_line()
        try:
            for rows in self._new_rows():
                self.seen.append(sighting(rows, self._clock.wall_ms() * 1000, self._window))
                self.rows += rows.num_rows
        except PenstockError as error:
            self.error = error


class LogObserver(Observer):
    """Follows a stream of the log: rows are there once their marker is."""

    def __init__(
        self, client: Client, stream: str, window: Window | None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        super().__init__(window, clock)
        self._client = client
        self._stream = stream
        self._after = client.position(stream)

    def _new_rows(self) -> Iterator[pa.Table]:
        for followed in self._client.follow(self._stream, self._after, stop=self._stopped):
            yield followed.rows


class FolderObserver(Observer):
    """Follows Spark's file sink: files are there once the sink's own log names them."""

    def __init__(self, folder: Path, window: Window | None, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(window, clock)
        self._folder = folder

    def _new_rows(self) -> Iterator[pa.Table]:
        known: set[str] = set()
        batch = 0
        while not self._stopped.wait(LOOK_EVERY_S):
            while (files := sink_files(self._folder, batch)) is not None:
                new = [path for path in files if path not in known]
                known.update(new)
                columns = ["sent_at", *([self._window.column] if self._window else [])]
                tables = [pq.read_table(path, columns=columns) for path in new]
                batch += 1
                if tables:
                    yield pa.concat_tables(tables)


def sink_files(folder: Path, batch: int) -> list[str] | None:
    """The files that Spark's file sink had committed with a batch; None before that.

    Every tenth entry of its log repeats the earlier ones; those are not left out here.
    """
    for name in (str(batch), f"{batch}.compact"):
        try:
            lines = (folder / METADATA / name).read_bytes().splitlines()
        except FileNotFoundError:
            continue
        # The first line is the version of the format.
        return [msgspec.json.decode(line)["path"].removeprefix("file://") for line in lines[1:]]
    return None
