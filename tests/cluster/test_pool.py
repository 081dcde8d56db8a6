"""Whose tasks run first on a standalone cluster of two workers with three cores each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.servers.processes import DriverProcess, ServerProcess
from support.spark.cluster import CONF, Cluster
from support.spark.kill_driver import START_S
from support.spark.sleeping_jobs import within

CORES = 6
Starts = dict[str, list[int]]


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Starts]]:
    """Starts of all tasks, by scene and job: one driver runs every scene."""
    folder = tmp_path_factory.mktemp("pools")
    cluster = Cluster(folder / "spark", cores=CORES // 2)
    server = ServerProcess(folder / "data").start()
    cores = {"spark.executor.cores": str(CORES // 2), "spark.cores.max": str(CORES)}
    driver = DriverProcess(
        server,
        folder / "job",
        script="pool_job.py",
        master=cluster.url,
        args={"conf": {**CONF, **cores}, "cores": CORES, "executors": 2},
    )
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    status: dict[str, Starts] = driver.status()  # type: ignore[assignment]
    yield status
    server.stop()
    cluster.stop()


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
