"""A checkpoint that is behind its log, drained: Spark without Penstock's commit goes on from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb

from support.servers.processes import ServerProcess
from support.spark.three_queries.expected import seen_totals, totals_of
from support.spark.three_queries.run import (
    ROWS,
    ThreeQueries,
    latest,
    query_status,
    wait_until_standing,
)

AT = 4


def drain(server: ServerProcess, checkpoint: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "drain", str(checkpoint), "--url", server.url],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PENSTOCK_TOKEN": server.token},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_spark_alone_goes_on_from_a_checkpoint_that_was_drained(
    server: ServerProcess, tmp_path: Path
) -> None:
    job = ThreeQueries(server, tmp_path / "job")
    driver = job.start(f"before_copy@{AT}", queries=["totals"])
    wait_until_standing(driver, {"totals"})
    driver.kill()
    query = str(query_status(driver)["totals"]["id"])
    checkpoint = job.checkpoint("totals")
    marked = seen_totals(job.client, query)[0].batch
    assert latest(checkpoint, "commits") < AT <= marked

    said = drain(server, checkpoint)
    assert latest(checkpoint, "commits") == marked
    assert f"has every batch up to {marked}" in said

    job.finish(plain=True, queries=["totals"])
    shown, prefix = seen_totals(job.client, query)
    assert shown.rows == totals_of(prefix)
    assert prefix.num_rows >= (AT + 1) * ROWS
    # What Spark alone has added, on top of what the log shows, is the whole.
    rows = {row[0]: row for row in shown.rows}
    files = f"{job.folder}/totals/batch=*/*.parquet"
    with duckdb.connect() as db:
        later = db.execute(
            f"select key, rows, total, last_n from read_parquet('{files}') order by rows"
        ).fetchall()
    assert later
    rows.update({row[0]: tuple(int(value) for value in row) for row in later})
    assert sorted(rows.values()) == totals_of(job.input)
