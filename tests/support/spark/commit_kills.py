"""kill -9 of the driver at a step of an asynchronous commit, with three kinds of sinks at once.

    batch 3 ends ─► state, marker or commit of 3 ─► offsets of 4 released ─► batch 4 seen ─► ...
    batch 4 computes meanwhile                      ▲ a kill before this cuts batch 4 anew

A driver is killed with batch 4 at the point named. What can be seen then is the work of whole
batches, each once, and no more of them than the order of release allows. Then the job is restarted
with other local folders and other cuts, and must come to the result over the whole input.

The log's batch 3 may be on its way to its marker while batch 4 computes. A batch of the others is
seen when its job ends. Spark's file sink skips a batch that it has, and what is skipped is not
computed again: so it shows nothing of a batch whose state is not durable. From a batch that it
shows, and that is not committed, Spark alone cannot go on with format 2; Penstock can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.servers.processes import DriverProcess, ServerProcess
from support.spark.three_queries.job import NAMES
from support.spark.three_queries.run import ThreeQueries, latest, told, wait_until_standing

AT = 4
RETAINED = "spark.sql.streaming.minBatchesToRetain"


@dataclass(frozen=True)
class Stop:
    """Where batch AT stands still, and the last batch that may be visible then, at least and most.

    A query that is not named goes on, and is killed wherever it is.
    """

    points: str
    visible: dict[str, tuple[int, int]]
    version: str = "2"  # of the checkpoint's format
    snapshots: str = "batches"  # the query whose state is kept without changelogs
    plain: bool = False  # Spark alone carries on the query into files
    again: str = ""  # where the run after that is killed: `totals` stands there at batch AT
    transform: bool = False  # `totals` keeps its state with Spark's provider, which it insists on
    retained: int = 100  # batches whose offsets and commits are kept
    queries: tuple[str, ...] = NAMES
    modes: dict[str, str] = field(default_factory=dict)  # of queries that do not commit in `full`

    def __str__(self) -> str:
        return f"{self.points}-v{self.version}"


def check_a_kill(
    server: ServerProcess,
    folder: Path,
    stop: Stop,
    wait_before_kill: Callable[[ThreeQueries, dict[str, str]], None] | None = None,
) -> None:
    """Kill the job at the point, look at what is seen, and let it come to its end."""
    job = ThreeQueries(server, folder)
    input_files = str(job.input_files) if stop.plain else None
    same: dict[str, Any] = {
        "version": stop.version,
        "snapshots": stop.snapshots,
        "input_files": input_files,
        "transform": stop.transform,
        "conf": {RETAINED: str(stop.retained)},
        "queries": stop.queries,
        "modes": stop.modes,
    }
    driver = job.start(f"{stop.points}@{AT}", **same)
    wait_until_standing(driver, set(stop.visible))
    if wait_before_kill is not None:
        wait_before_kill(job, {name: str(query["id"]) for name, query in told(driver).items()})
    driver.kill()
    ids = check_what_is_seen(job, driver, stop)
    if stop.again:
        driver = job.start(f"{stop.again}@{AT}", **same)
        wait_until_standing(driver, {"totals"})
        driver.kill()
        # The others have gone on, to wherever they were killed.
        check_what_is_seen(job, driver, replace(stop, visible={"totals": stop.visible["totals"]}))

    logs = {
        file: file.read_bytes()
        for name in ids
        for file in job.checkpoint(name).glob("*/[0-9]*")
        if file.parent.name in ("offsets", "commits")
    }
    if stop.plain:
        job.finish(**{**same, "queries": ["files"]}, plain=True)
        job.finish(**{**same, "queries": ["totals", "batches"]})
    else:
        job.finish(**same)
    job.check_whole(ids)
    # Nothing was cut anew that was recorded, and nothing recorded was lost, unless it was old.
    lost = {file for file in logs if not file.exists()}
    assert all(is_old(file, stop.retained) for file in lost), lost
    assert all(file.read_bytes() == logs[file] for file in set(logs) - lost)


def is_old(file: Path, retained: int) -> bool:
    checkpoint, log = file.parent.parent, file.parent.name
    return int(file.name) <= latest(checkpoint, log) - retained


def check_what_is_seen(job: ThreeQueries, driver: DriverProcess, stop: Stop) -> dict[str, str]:
    ids = {name: str(query["id"]) for name, query in told(driver).items()}
    for name, query in ids.items():
        least, most = stop.visible.get(name, (-1, 99))
        # Where a batch may be visible or not, the kill may come while it becomes so.
        seen = job.seen(name, query, whole=least < most)
        assert least <= seen.batch <= most, (name, seen.batch)
        # Spark runs a batch again only if exactly that one has offsets and no commit.
        checkpoint = job.checkpoint(name)
        committed = latest(checkpoint, "commits")
        assert latest(checkpoint, "offsets") - committed in (0, 1), name
        if name == "totals":
            assert committed <= seen.batch
        else:
            assert committed <= seen.batch <= latest(checkpoint, "offsets"), name
    return ids
