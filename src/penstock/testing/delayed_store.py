"""A checkpoint store with a declared delay, for where no HDFS or object store is at hand."""

from __future__ import annotations

from pathlib import Path

STANDARD = ("remote20", "remote80")


def delayed_store(
    scheme: str = "remote20",
    *,
    ms_per_operation: int | None = None,
    ms_per_mb: float | None = None,
    faults: Path | None = None,
) -> dict[str, str]:
    """Spark settings that make `SCHEME:///folder` a local folder behind a delay.

    `remote20` takes 20 ms per operation and moves 100 MB/s, like HDFS; `remote80` takes 80 ms and
    moves 50 MB/s, like an object store; any other scheme has the delays given here. `faults` names
    a file that scripts faults while a query runs, on the driver and on executors: lines of
    `fail OPERATION`, `hang OPERATION` or `full`, where OPERATION is one of open, create, write,
    rename, delete, list, mkdirs and status. Give the settings before Spark starts.
    """
    settings = {
        f"spark.hadoop.fs.{scheme}.impl": "penstock.testing.DelayedFileSystem",
        f"spark.hadoop.fs.AbstractFileSystem.{scheme}.impl": "penstock.testing.DelayedFs",
    }
    if ms_per_operation is not None:
        settings[f"spark.hadoop.fs.{scheme}.ms.per.operation"] = str(ms_per_operation)
    if ms_per_mb is not None:
        settings[f"spark.hadoop.fs.{scheme}.ms.per.mb"] = str(ms_per_mb)
    if faults is not None:
        settings[f"spark.hadoop.fs.{scheme}.faults"] = str(faults)
    return settings
