"""Running the job of three_queries.py, and comparing what it shows with what it must show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.client import Client
from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.three_queries.expected import (
    Seen,
    last_reading,
    readings,
    seen_batches,
    seen_files,
    seen_totals,
    totals_of,
    windows_closed_by,
)
from support.spark.three_queries.job import NAMES, READINGS, kind_of

ROWS = 300
BATCHES = 9
START_S = 300.0
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"

ROOMY = {
    # Every query must be able to stand still with all its tasks and files, and not be in the way.
    "spark.penstock.commit.threads": "16",
    "spark.sql.streaming.stateStore.rocksdb.minDeltasForSnapshot": "2",
}


class ThreeQueries:
    """The job over one input: a stream of the server, and a folder with the same rows in files."""

    def __init__(
        self,
        server: ServerProcess,
        folder: Path,
        batches: int = BATCHES,
        *,
        fed_at_first: int | None = None,
    ) -> None:
        """The input of so many batches is there at once, of all unless told; the rest by `feed`."""
        self.folder = folder
        self.client: Client = server.client()
        self._server = server
        self._runs = 0
        tables = [readings(i * ROWS, ROWS) for i in range(batches)]
        tables.append(last_reading(batches * ROWS))
        self.input = pa.concat_tables(tables)
        self.input_files = folder / "input"
        self.input_files.mkdir(parents=True)
        self.client.create("readings", READINGS, substreams=2, key="key")
        for number, table in enumerate(tables):
            # Spark's source reads no file whose name begins so, and this one is not whole yet.
            hidden = self._hidden(number)
            pq.write_table(table, hidden)
            # Spark takes the files in the order of these times.
            os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        self._unfed = list(enumerate(tables))
        self.feed(len(tables) if fed_at_first is None else fed_at_first)

    def feed(self, batches: int | None = None) -> None:
        """Append the input of the next batches, or all that is left: a commit and a file each."""
        count = len(self._unfed) if batches is None else batches
        for number, table in self._unfed[:count]:
            self.client.append("readings", table)
            self._hidden(number).rename(self.input_files / f"{number}.parquet")
        del self._unfed[:count]

    def _hidden(self, number: int) -> Path:
        return self.input_files / f".{number}"

    def start(
        self,
        failpoint: str | None = None,
        *,
        rows_per_batch: int = ROWS,
        version: str = "2",
        # Tasks that stand still keep their cores.
        master: str = "local[8]",
        supervised: bool = False,
        conf: dict[str, str] | None = None,
        machine: int | None = None,
        **args: Any,
    ) -> DriverProcess:
        """A driver with local folders of its own: those of an earlier one are out of its reach.

        Unless it runs on the same machine, that is, has the same number of one.
        """
        self._runs += 1
        local = self.folder / f"local-{self._runs if machine is None else f'of-{machine}'}"
        own = {"spark.local.dir": str(local), "spark.penstock.local.dir": str(local / "held")}
        return DriverProcess(
            self._server,
            self.folder,
            script="three_queries/job.py",
            master=master,
            failpoint=failpoint,
            supervised=supervised,
            args={
                "conf": {**ROOMY, **own, FORMAT: version, **(conf or {})},
                "rows_per_batch": rows_per_batch,
                "files_per_batch": rows_per_batch // ROWS,
                **args,
            },
        )

    def finish(self, **args: Any) -> DriverProcess:
        """Runs to the end of the input, in cuts that no batch so far was made in; the driver."""
        driver = self.start(None, rows_per_batch=100 * ROWS, available_now=True, **args)
        code = driver.wait(START_S)
        assert code == 0, driver.said()[-6000:]
        return driver

    def checkpoint(self, name: str) -> Path:
        return self.folder / "checkpoints" / name

    def seen(
        self, name: str, query: str, *, whole: bool = False, skipped: int | None = None
    ) -> Seen:
        """What is visible now; fails unless it is all that the visible batches make, and once.

        `whole` is for a query that was killed while it may have shown a batch: see `seen_batches`.
        `skipped` is a batch whose rows moved no watermark, as its sink had them when it ran again.
        """
        if kind_of(name) == "totals":
            seen, prefix = seen_totals(self.client, query, name)
            assert seen.rows == totals_of(prefix)
            return seen
        seen = self._windows(name, whole=whole)
        before = max(0, seen.batch)
        watermarked = before - 1 if before - 1 == skipped else before
        expected = windows_closed_by(self.input.slice(0, watermarked * ROWS), self.input)
        assert seen.rows == expected, (
            f"{name} after batch {seen.batch}: {len(seen.rows)} windows, not {len(expected)}"
        )
        return seen

    def check_whole(self, ids: dict[str, str]) -> None:
        """The outputs of these queries are those of the whole input."""
        for name, query in ids.items():
            if kind_of(name) == "totals":
                shown, _ = seen_totals(self.client, query, name)
                assert shown.rows == totals_of(self.input), name
            else:
                assert self._windows(name).rows == windows_closed_by(self.input, self.input), name

    def _windows(self, name: str, *, whole: bool = False) -> Seen:
        folder = self.folder / name
        is_of_files = kind_of(name) == "files"
        return seen_files(folder) if is_of_files else seen_batches(folder, whole=whole)


def query_status(driver: DriverProcess) -> dict[str, dict[str, Any]]:
    """What each query last said of itself."""
    queries: Any = driver.status().get("queries", {})
    return dict(queries)


def standing(driver: DriverProcess) -> set[str]:
    """The queries that stand still at a failpoint, which knows them by query or by run."""
    stopped = driver.stopped_queries()
    return {name for name, q in query_status(driver).items() if {q["id"], q["run"]} & stopped}


def wait_until_standing(driver: DriverProcess, names: set[str]) -> None:
    wait_until(
        f"{names} stand still",
        lambda: names <= standing(driver) or not driver.is_running(),
        START_S,
    )
    assert driver.is_running(), driver.said()[-6000:]
    assert set(query_status(driver)) >= names
    assert set(query_status(driver)) <= set(NAMES)


def latest(checkpoint: Path, log: str) -> int:
    """The last batch that the offset or commit log of a checkpoint has, -1 for none."""
    return max((int(file.name) for file in (checkpoint / log).glob("[0-9]*")), default=-1)
