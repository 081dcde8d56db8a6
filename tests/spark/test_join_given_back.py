"""A join whose state is in one store per partition is continued by Spark without the jar."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from support.servers.processes import wait_until
from support.spark import plain_windows, spark_alone, window_runs
from support.spark.evicting_queries import STOCK

OURS, ALONE = 2, 2
"""Files that are joined by us, and then by Spark."""


def test_spark_alone_goes_on_from_a_join_of_format_3(spark: SparkSession, tmp_path: Path) -> None:
    parts, given_back, whole = (tmp_path / name for name in ("parts", "given_back", "whole"))
    settings = {**plain_windows.NO_DATA, plain_windows.JOIN_FORMAT: "3"}

    def joined() -> DataFrame:
        return plain_windows.read(spark, parts, "join")

    def committed(_: object) -> None:
        last = given_back / "commits" / str(OURS - 1)
        wait_until(f"{last} is there", last.exists)

    for number in range(OURS):
        plain_windows.write_part(parts, number)
    ours = window_runs.run_frame(
        spark, joined, str(given_back), mode="append", settings=settings, at_end=committed
    )
    for number in range(OURS, OURS + ALONE):
        plain_windows.write_part(parts, number)
    alone = spark_alone.continued(parts, given_back, "join")
    assert sorted(alone) == list(range(OURS, OURS + ALONE))
    one_run = window_runs.run_frame(
        spark, joined, str(whole), mode="append", settings={**settings, **STOCK}
    )
    assert window_runs.differences(ours.answer | alone, one_run.answer) == []
    assert any(other is None for rows in alone.values() for *_, other in rows), "none has expired"
    offsets = (given_back / "offsets" / "0").read_text()
    assert '"spark.sql.streaming.join.stateFormatVersion":"3"' in offsets
