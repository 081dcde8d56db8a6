"""kill -9 of the driver at steps of an asynchronous commit, with three kinds of sinks at once.

    batch 3 ends ─► state, marker or commit of 3 ─► offsets of 4 released ─► batch 4 seen ─► ...
    batch 4 computes meanwhile                      ▲ a kill before this cuts batch 4 anew

A driver is killed with batch 4 of its queries at the points named, each query at its own. What can
be seen then is the work of whole batches, each once, and no more of them than the order of release
allows. Then the job is restarted with other local folders and other cuts, and must come to the
result over the whole input.

The log's batch 3 may be on its way to its marker while batch 4 computes. A batch of the others is
seen when its job ends. Spark's file sink skips a batch that it has, and what is skipped is not
computed again: so it shows nothing of a batch whose state is not durable. From a batch that it
shows, and that is not committed, Spark alone cannot go on with format 2; Penstock can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.failpoints import Points
from support.spark.three_queries.job import CHANGELOG, kind_of
from support.spark.three_queries.run import (
    BATCHES,
    FORMAT,
    START_S,
    ThreeQueries,
    latest,
    query_status,
)

AT = 4
ONLY = f"batch={AT}"
NEXT_ONLY = f"batch={AT + 1}"
RETAINED = "spark.sql.streaming.minBatchesToRetain"
THREADS = "spark.penstock.commit.threads"
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
ANY_BATCH = (-1, 99)


@dataclass(frozen=True)
class Stop:
    """Where batch AT stands still, and the last batch that may be visible then, at least and most.

    `visible` names its queries by their kinds.
    """

    points: str
    visible: dict[str, tuple[int, int]]
    version: str = "2"  # of the checkpoint's format
    snapshots: str = "batches"  # the kind of query whose state is kept without changelogs
    plain: bool = False  # Spark alone carries on the query into files
    again: str = ""  # where the run after that is killed: `totals` stands there at batch AT
    transform: bool = False  # `totals` keeps its state with Spark's provider, which it insists on
    retained: int = 100  # batches whose offsets and commits are kept
    modes: dict[str, str] = field(default_factory=dict)  # of queries that do not commit in `full`

    def settings(self, kind: str) -> dict[str, str]:
        return {
            FORMAT: self.version,
            CHANGELOG: str(kind != self.snapshots).lower(),
            RETAINED: str(self.retained),
        }


def check_a_kill(
    server: ServerProcess,
    folder: Path,
    stop: Stop,
    wait_before_kill: Callable[[ThreeQueries, dict[str, str]], None] | None = None,
) -> None:
    """Kill a job with one stop; its queries are named by their kinds."""
    check_kills(server, folder, {"": stop}, wait_before_kill)


def check_kills(
    server: ServerProcess,
    folder: Path,
    stops: Mapping[str, Stop],
    wait_before_kill: Callable[[ThreeQueries, dict[str, str]], None] | None = None,
) -> None:
    """Kill the job when each query is at its point, look at what is seen, let it come to its end.

    The queries of a stop are named by their kinds, with the name of the stop behind.
    """
    killed = KilledJob(server, folder, stops)
    killed.kill_at_points(wait_before_kill)
    killed.kill_again()
    logs = killed.logs()
    killed.finish()
    killed.check_logs(logs)


class KilledJob:
    """One driver for the queries of all stops, which is started, killed and started again."""

    def __init__(self, server: ServerProcess, folder: Path, stops: Mapping[str, Stop]) -> None:
        # Nothing reaches batch AT before it is held there.
        self._job = ThreeQueries(server, folder, fed_at_first=1)
        self._points = Points(folder / "points")
        self._stops = {
            f"{kind}_{name}" if name else kind: stop
            for name, stop in stops.items()
            for kind in stop.visible
        }
        self._ids: dict[str, str] = {}

    def kill_at_points(
        self, wait_before_kill: Callable[[ThreeQueries, dict[str, str]], None] | None
    ) -> None:
        driver = self._start()
        self._wait(driver, "the queries have started", lambda: bool(query_status(driver)))
        self._ids = {name: str(query["id"]) for name, query in query_status(driver).items()}
        assert set(self._ids) == set(self._stops)
        points = {name: stop.points for name, stop in self._stops.items()}
        self._hold(driver, points)
        # The rest is left for the end: a run that has data cuts a batch without any behind it.
        self._job.feed(BATCHES - 1)
        self._wait_until_standing(driver, points)
        if wait_before_kill is not None:
            wait_before_kill(self._job, self._ids)
        driver.kill()
        self._points.let_go()
        for name, stop in self._stops.items():
            self._check_seen(name, stop.visible[kind_of(name)])

    def kill_again(self) -> None:
        """Kill the next run where some queries stand; the others go on to wherever they are."""
        again = {name: stop.again for name, stop in self._stops.items() if stop.again}
        if not again:
            return
        skipping = dict.fromkeys(self._skipping_batch_at(), "before_commit")
        for name, point in again.items():
            self._points.hold(point, [self._ids[name]], ONLY)
        for name, point in skipping.items():
            self._points.hold(point, [self._ids[name]], NEXT_ONLY)
        driver = self._start()
        self._wait(driver, "the queries have started", lambda: bool(query_status(driver)))
        self._wait_until_standing(driver, again)
        self._wait_until_standing(driver, skipping, NEXT_ONLY)
        driver.kill()
        self._points.let_go()
        for name, stop in self._stops.items():
            if name in skipping:
                self._check_seen(name, (AT + 1, AT + 1), skipped=AT)
            else:
                self._check_seen(name, stop.visible[kind_of(name)] if stop.again else ANY_BATCH)

    def _skipping_batch_at(self) -> list[str]:
        """The queries whose sink has batch AT and whose format lets Spark skip it after the kill.

        Batch AT is not computed again then, so its rows move no watermark: batch AT + 1 closes the
        windows that batch AT closed, and batch AT + 2 those of both.
        """
        return [
            name
            for name, stop in self._stops.items()
            if stop.version == "1" and kind_of(name) == "files" and stop.visible["files"][0] == AT
        ]

    def finish(self) -> None:
        """Run all queries to the end of the input, those that Spark alone carries on first."""
        self._job.feed()
        plain = self._readers_of_files()
        if plain:
            self._job.finish(**self._args(plain), plain=True)
        self._job.finish(**self._args([name for name in self._stops if name not in plain]))
        self._job.check_whole(self._ids)

    def logs(self) -> dict[Path, bytes]:
        """What the offset and commit logs of all queries say, by file."""
        return {
            file: file.read_bytes()
            for name in self._stops
            for file in self._job.checkpoint(name).glob("*/[0-9]*")
            if file.parent.name in ("offsets", "commits")
        }

    def check_logs(self, logs: dict[Path, bytes]) -> None:
        """Nothing was cut anew that was recorded, and nothing recorded was lost, unless old."""
        lost = {file for file in logs if not file.exists()}
        for file in lost:
            assert is_old(file, self._stops[file.parent.parent.name].retained), file
        assert all(file.read_bytes() == logs[file] for file in set(logs) - lost)

    def _start(self) -> DriverProcess:
        # Tasks that stand still keep their cores, and files that do their threads.
        count = len(self._stops)
        return self._job.start(
            str(self._points.folder),
            master=f"local[{4 + 2 * count}]",
            # While the input is awaited no batch is to be cut without one.
            **self._args(list(self._stops), {NO_DATA: "false"}),
        )

    def _args(self, names: list[str], conf: dict[str, str] | None = None) -> dict[str, Any]:
        stops = self._stops
        return {
            "queries": names,
            "conf": {THREADS: str(max(16, 6 * len(stops))), **(conf or {})},
            "settings": {name: stops[name].settings(kind_of(name)) for name in names},
            "modes": {name: stops[name].modes.get(kind_of(name), "full") for name in names},
            "transformed": [
                name for name in names if stops[name].transform and kind_of(name) == "totals"
            ],
            "file_readers": self._readers_of_files(),
            "input_files": str(self._job.input_files),
        }

    def _readers_of_files(self) -> list[str]:
        """The queries that Spark alone carries on: it has no source that reads the log."""
        return [
            name for name, stop in self._stops.items() if stop.plain and kind_of(name) == "files"
        ]

    def _hold(self, driver: DriverProcess, points: Mapping[str, str]) -> None:
        for name, some in points.items():
            for point in some.split(","):
                self._points.hold(point, _known_by(driver, name), ONLY)

    def _wait_until_standing(
        self, driver: DriverProcess, points: Mapping[str, str], only: str = ONLY
    ) -> None:
        def going() -> list[str]:
            return [
                name
                for name, some in points.items()
                if not any(
                    self._points.held(point, _known_by(driver, name), only)
                    for point in some.split(",")
                )
            ]

        try:
            self._wait(driver, "all queries stand still", lambda: not going())
        except AssertionError as error:
            error.add_note(f"not at their points: {going()}")
            raise

    def _wait(self, driver: DriverProcess, goal: str, condition: Callable[[], bool]) -> None:
        try:
            wait_until(goal, lambda: not driver.is_running() or condition(), START_S)
            assert driver.is_running(), driver.said()[-6000:]
        except AssertionError:
            driver.kill()
            raise

    def _check_seen(
        self, name: str, visible: tuple[int, int], *, skipped: int | None = None
    ) -> None:
        least, most = visible
        # Where a batch may be visible or not, the kill may come while it becomes so.
        seen = self._job.seen(name, self._ids[name], whole=least < most, skipped=skipped)
        assert least <= seen.batch <= most, (name, seen.batch)
        # Spark runs a batch again only if exactly that one has offsets and no commit.
        checkpoint = self._job.checkpoint(name)
        committed = latest(checkpoint, "commits")
        assert latest(checkpoint, "offsets") - committed in (0, 1), name
        if kind_of(name) == "totals":
            assert committed <= seen.batch
        else:
            assert committed <= seen.batch <= latest(checkpoint, "offsets"), name


def _known_by(driver: DriverProcess, name: str) -> tuple[str, str]:
    """A point knows a query by its id or by its run."""
    query = query_status(driver)[name]
    return str(query["id"]), str(query["run"])


def is_old(file: Path, retained: int) -> bool:
    checkpoint, log = file.parent.parent, file.parent.name
    return int(file.name) <= latest(checkpoint, log) - retained
