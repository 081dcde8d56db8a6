"""Delta's own library as a sink, when it has a batch that Spark has not committed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import maven
from support.servers.processes import START_S, DriverProcess, ServerProcess
from support.spark.outside_jars import DOES_NOT_RUN

VERSION = "4.4.0"
"""The newest on Maven Central, for Spark 4.2; its module delta-spark_4.2_2.13 is the same jar."""
ALSO_TRIED = "4.2.0, 4.3.0 and 4.3.1, and the modules of 4.2.0 to 4.4.0 for Spark 4.0 and 4.1"
"""All call the constructor of LogicalRDD that Spark 4.3 has given one more parameter."""
JARS = (
    *(f"io.delta:{module}:{VERSION}" for module in ("delta-spark_2.13", "delta-storage")),
    *(f"io.delta:delta-kernel-{part}:{VERSION}" for part in ("api", "defaults", "unitycatalog")),
    *(f"io.unitycatalog:unitycatalog-{part}:0.5.0" for part in ("client", "hadoop")),
)
ROWS = 10


def test_a_query_into_delta_goes_on_after_a_batch_that_delta_has_and_skips(tmp_path: Path) -> None:
    try:
        jars = maven.jars(*JARS)
    except maven.CannotFetch as reason:
        pytest.skip(f"skipped, because {reason}")
    (tmp_path / "input").mkdir()
    numbers = pa.table({"n": pa.array(range(ROWS), pa.int64())})
    pq.write_table(numbers, tmp_path / "input" / "0.parquet")
    driver = DriverProcess(
        ServerProcess(tmp_path / "no-server"),
        tmp_path,
        script="delta_job.py",
        args={"jars": [str(jar) for jar in jars]},
    )
    code = driver.wait(START_S)
    if code == DOES_NOT_RUN:
        misfit = driver.said().splitlines()[-1]
        pytest.skip(
            f"skipped, because Delta {VERSION} does not run on this Spark, nor do {ALSO_TRIED}: "
            f"{misfit}"
        )
    assert code == 0, driver.said()[-6000:]

    log = sorted((tmp_path / "table" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for file in log for line in file.read_text().splitlines()]
    assert [a["txn"]["version"] for a in actions if "txn" in a] == [0], "the batch is there once"
    added = [a["add"]["path"] for a in actions if "add" in a]
    rows = pa.concat_tables(pq.read_table(tmp_path / "table" / path) for path in added)
    assert sorted(rows["n"].to_pylist()) == list(range(ROWS))
