"""Whose tasks run first on a standalone cluster of two workers with three cores each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.servers.processes import DriverProcess, ServerProcess
from support.spark.cluster import CONF, Cluster
from support.spark.hidden_gpus import HIDDEN
from support.spark.kill_driver import START_S
from support.spark.sleeping_jobs import within

CORES = 6
SCENES = ("overtaking", "sharing", "outside")
Starts = dict[str, list[int]]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Starts of all tasks, by scene and job, and a query: one driver runs every scene."""
    folder = tmp_path_factory.mktemp("pools")
    cluster = Cluster(folder / "spark", cores=CORES // 2)
    server = ServerProcess(folder / "data").start()
    cores = {"spark.executor.cores": str(CORES // 2), "spark.cores.max": str(CORES)}
    driver = DriverProcess(
        server,
        folder / "job",
        script="pool_job.py",
        master=cluster.url,
        args={"conf": {**CONF, **HIDDEN, **cores}, "cores": CORES, "executors": 2},
    )
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    yield driver.status()
    server.stop()
    cluster.stop()


@pytest.fixture
def starts(outcome: dict[str, Any]) -> dict[str, Starts]:
    return {scene: of_jobs for scene, of_jobs in outcome.items() if scene in SCENES}


def test_the_later_job_with_the_earlier_deadline_overtakes(starts: dict[str, Starts]) -> None:
    early, urgent = starts["overtaking"]["early"], starts["overtaking"]["urgent"]
    assert within(early, urgent) <= CORES
    assert sum(start > urgent[-1] for start in early) >= 5 * CORES


def test_three_queries_share_six_cores_by_the_time_they_have_left(
    starts: dict[str, Starts],
) -> None:
    """Counted while all three have tasks waiting, and after each has got its first cores."""
    jobs = starts["sharing"]
    first = max(times[0] for times in jobs.values()) + 1000
    last = min(times[-1] for times in jobs.values())
    counts = {name: within(times, [first, last]) for name, times in jobs.items()}
    shares = {name: CORES * count / sum(counts.values()) for name, count in counts.items()}
    assert shares == pytest.approx({"a": 1, "b": 2, "c": 3}, abs=0.4)


def test_a_job_outside_the_pool_keeps_one_core(starts: dict[str, Starts]) -> None:
    managed, unmanaged = starts["outside"]["managed"], starts["outside"]["unmanaged"]
    assert unmanaged[-1] < managed[-1]
    ours = within(managed, unmanaged)
    assert ours / (ours + len(unmanaged)) == pytest.approx((CORES - 1) / CORES, abs=0.12)


def test_a_query_with_a_deadline_is_admitted_and_its_jobs_are_in_the_pool(
    outcome: dict[str, Any],
) -> None:
    admitted = outcome["admitted"]
    assert admitted["rows"] == [0, 1]
    assert set(admitted["pools"]) == {"penstock"}
    assert (admitted["policy"], admitted["deadline_ms"]) == ("deadline", 5_000)
    assert admitted["slack_ms"] < 5_000


@pytest.mark.parametrize("name", ["asked", "planned"])
def test_batches_are_planned_with_the_machines_of_executors_and_measured_there(
    outcome: dict[str, Any], name: str
) -> None:
    """Workers that nobody asked for are planned once all executors have told that theirs can."""
    planned = outcome["planned"][name]
    assert len(planned["rows"]) == 4
    (machine,) = planned["machines"]
    assert machine.startswith("2 x ")
    assert machine.endswith("no GPU")
    assert planned["paths"] == ["columnar"] * 3
    assert all(ms for operations in planned["operations_ms"] for ms in operations)
