"""Running the job of take_over_job.py, and looking at what it leaves when it is killed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.take_over.job import NO_DATA, SLIDE_MS, VARIANTS
from support.spark.three_queries.expected import (
    Row,
    Seen,
    last_reading,
    readings,
    seen_files,
    windows_closed_by,
)
from support.spark.three_queries.run import ROOMY, ROWS, START_S, latest, standing

CONF = {
    **ROOMY,
    # Batches 2, 5 and 8 are in the log of the sink with all before them, others by themselves.
    "spark.sql.streaming.fileSink.log.compactInterval": "3",
    NO_DATA: "false",
}


def closed_by(seen: pa.Table, all_rows: pa.Table) -> list[Row]:
    """The windows that the watermark after `seen` closes."""
    return windows_closed_by(seen, all_rows, SLIDE_MS)


class TakenOver:
    """One folder for the job, its input of `files` files and a last one, and the runs on it."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        # All runs share it, as drivers of one machine may.
        self.local = folder / "held"
        self._nowhere = ServerProcess(folder / "no-server")
        tables = [readings(i * ROWS, ROWS) for i in range(files)]
        self.tables = [*tables, last_reading(files * ROWS)]
        folder.mkdir(parents=True)

    def give(self, files: range, *names: str) -> None:
        for name in names or VARIANTS:
            given = self.folder / name / "input"
            given.mkdir(parents=True, exist_ok=True)
            for i in files:
                fresh = given / f".{i}"
                pq.write_table(self.tables[i], fresh)
                # Spark takes the files in the order of these times.
                os.utime(fresh, (1_700_000_000 + i, 1_700_000_000 + i))
                fresh.rename(self.given(name, i))

    def given(self, name: str, file: int) -> Path:
        return self.folder / name / "input" / f"{file}.parquet"

    def rows(self, files: int) -> pa.Table:
        return pa.concat_tables(self.tables[:files])

    def start(
        self, failpoint: str | None = None, conf: dict[str, str] | None = None, **args: Any
    ) -> DriverProcess:
        own = {"spark.penstock.local.dir": str(self.local), **(conf or {})}
        return DriverProcess(
            self._nowhere,
            self.folder,
            script="take_over/job.py",
            # Tasks that stand still keep their cores.
            master="local[8]",
            failpoint=failpoint,
            args={"conf": {**CONF, **own}, **args},
        )

    def finish(self, last: int, **args: Any) -> None:
        """Runs to the end of the input, which is `last` for all queries."""
        driver = self.start(available_now=True, last=last, **args)
        code = driver.wait(START_S)
        assert code == 0, driver.said()[-6000:]

    def checkpoint(self, name: str) -> Path:
        return self.folder / name / "checkpoint"

    def seen(self, name: str) -> Seen:
        return seen_files(self.folder / name / "output")

    def wait_within(
        self, driver: DriverProcess, batch: int, held: set[str], others: set[str]
    ) -> None:
        """Returns with the batch in every sink; only the `others` have committed it."""

        def is_there() -> bool:
            committed = all(latest(self.checkpoint(name), "commits") == batch for name in others)
            return committed and held <= standing(driver)

        wait_until(
            f"batch {batch} is in every sink",
            lambda: not driver.is_running() or is_there(),
            START_S,
        )
        assert driver.is_running(), driver.said()[-6000:]

    def kill_within(
        self, driver: DriverProcess, batch: int, held: set[str], skipping: frozenset[str]
    ) -> None:
        """kill -9 with the batch in every sink, and in no log of commits.

        Where nothing can hold a commit back, it is taken away again: what is left is what a kill
        right before it leaves. The sinks of queries that are `skipping` had the batch before, so
        that it was not computed again, and Spark's watermark is still that of this batch.
        """
        others = set(VARIANTS) - held
        self.wait_within(driver, batch, held, others)
        driver.kill()
        for name in others:
            for file in (str(batch), f".{batch}.crc"):
                (self.checkpoint(name) / "commits" / file).unlink(missing_ok=True)
        for name in VARIANTS:
            seen = self.seen(name)
            assert (seen.batch, latest(self.checkpoint(name), "offsets")) == (batch, batch), name
            assert latest(self.checkpoint(name), "commits") == batch - 1, name
            read = self.rows(batch - 1 if name in skipping else batch)
            assert seen.rows == closed_by(read, self.rows(batch + 1)), name

    def open_windows(self, files: int) -> list[Row]:
        """What the state holds after so many files: what those before the last have not ended."""
        closed = closed_by(self.rows(files - 1), self.rows(files))
        return sorted(set(closed_by(self.tables[-1], self.rows(files))) - set(closed))
