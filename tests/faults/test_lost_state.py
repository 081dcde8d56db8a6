"""State that the checkpoint location has lost, with snapshots in the log and without.

The server trims at once what nobody needs, so that what a query is brought back from is the least
that the log may keep.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import lmdb
import pytest

from penstock.client import Client
from penstock.errors import BadCall
from penstock.log.store.layout import TABLES, lsn_key
from penstock.model.ids import Lsn
from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.exactly_once import EVENTS, PAIRED, Feeder, check
from support.spark.kill_driver import (
    START_S,
    finish,
    marked_all,
    wait_for_commits,
    wait_for_queries,
)

PARTITIONS = 2
STORES_OF_A_JOIN = 4
SEED = 20261115
# The second where batches that the location had not got yet were written to it from the log.
MISSED_BY_SPARK = (
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
    "CANNOT_LOAD_STATE_STORE",
)
LOSSES = 2
AT_ONCE = [
    f"--set={setting}"
    for setting in ("collect_s=1", "trim_after_ms=0", "markers_kept_min=1", "verify_entries_max=0")
]
SOON = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.stateStore.maintenanceInterval": "200ms",
}
FORMAT_1 = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "1"}
NO_CHANGE_LOGS = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"}


@pytest.fixture
def server(tmp_path: Path, log_options: list[str]) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data", *AT_ONCE, *log_options).start()
    process.client().create("events", EVENTS, substreams=2, key="key")
    # For the oracle, which reads all of it.
    process.client().register("oracle", "events")
    yield process
    process.stop()


def settings(snapshots: str) -> dict[str, str]:
    return {**SOON, "spark.penstock.commit.snapshots": snapshots}


def run_and_kill(
    server: ServerProcess,
    folder: Path,
    conf: dict[str, str],
    is_enough: Callable[[str], bool],
    *names: str,
    settings_of: dict[str, dict[str, str]] | None = None,
) -> tuple[dict[str, str], int]:
    """Stateful queries under load, killed when enough of each is done: ids, and the rows sent."""
    names = names or ("totals",)
    args: dict[str, object] = {"queries": names, "conf": conf, "settings": settings_of or {}}
    driver = DriverProcess(server, folder, args=args)
    try:
        ids = wait_for_queries(driver, len(names))

        def is_done() -> bool:
            # Each is asked every time: what it remembers begins with the first question.
            enough = [is_enough(query) for query in ids.values()]
            return not driver.is_running() or all(enough)

        with Feeder(server.client()) as feeder:
            wait_until("enough is done", is_done, START_S)
            assert driver.is_running(), driver.said()[-4000:]
            driver.kill()
    finally:
        driver.kill()
    return ids, feeder.sent


class Snapshots:
    """Watches the snapshots of queries in the log until older ones have gone."""

    def __init__(self, client: Client, stores: int) -> None:
        self._client = client
        self._stores = stores
        self.first: dict[str, dict[str, Lsn]] = {}

    def have_come_and_gone(self, query: str) -> bool:
        stores = self._client.state(query).stores if self._client.markers(query) else ()
        first = self.first.setdefault(query, {})
        for each in stores:
            if each.snapshot:
                first.setdefault(each.folder, each.snapshot[-1].entries[0])
        newest = [each.snapshot[-1].entries[0] for each in stores if each.snapshot]
        return len(newest) == self._stores and all(
            lsn not in newest and self._is_gone(query, lsn) for lsn in first.values()
        )

    def _is_gone(self, query: str, lsn: Lsn) -> bool:
        try:
            self._client.file(query, lsn)
        except BadCall as error:
            return error.code == "unknown_entries"
        return False


def lose_all(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "state")


def lose_snapshots(checkpoint: Path) -> None:
    gone = [*checkpoint.glob("state/*/*/*.zip"), *checkpoint.glob("state/*/*/SSTs")]
    assert len(gone) >= 2 * PARTITIONS
    for path in gone:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@dataclass(frozen=True)
class Loss:
    """What the location of a query loses, and the settings the query runs with."""

    lose: Callable[[Path], None] = lose_all
    settings: dict[str, str] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("log_options", "losses"),
    [
        # With the log in a folder all of it is lost below, again and again.
        pytest.param("lost_state", {"totals": Loss()}, id="the log in JetStream"),
        pytest.param(
            None,
            {
                "totals_snapshots": Loss(lose_snapshots),
                "totals_format_1": Loss(settings=FORMAT_1),
                "totals_without_change_logs": Loss(settings=NO_CHANGE_LOGS),
            },
            id="the log in a folder",
        ),
    ],
    indirect=["log_options"],
)
def test_a_query_goes_on_from_the_log_when_the_location_has_lost_its_state(
    server: ServerProcess, tmp_path: Path, losses: dict[str, Loss]
) -> None:
    conf = settings("log")
    client = server.client()
    folder = tmp_path / "job"
    watched = Snapshots(client, PARTITIONS)
    settings_of = {name: loss.settings for name, loss in losses.items()}
    ids, sent = run_and_kill(
        server, folder, conf, watched.have_come_and_gone, *losses, settings_of=settings_of
    )
    for name, loss in losses.items():
        loss.lose(folder / "checkpoints" / name)
    assert finish(server, folder, queries=[*losses], conf=conf, settings=settings_of) == ids
    assert check(client, ids) == dict.fromkeys(losses, sent)


def test_state_is_lost_at_random_moments_again_and_again(
    server: ServerProcess, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    conf = settings("log")
    client = server.client()
    folder = tmp_path / "job"
    ids: dict[str, str] = {}
    with Feeder(server.client()) as feeder:
        for _ in range(LOSSES):
            driver = DriverProcess(server, folder, args={"queries": ["totals"], "conf": conf})
            try:
                before = marked_all(client, ids)
                ids = wait_for_queries(driver, 1)
                wait_for_commits(client, ids, before)
                time.sleep(chance.uniform(0.0, 4.0))
            finally:
                driver.kill()
            check(client, ids)
            lose_all(folder / "checkpoints" / "totals")
    assert finish(server, folder, queries=["totals"], conf=conf) == ids
    assert check(client, ids) == {"totals": feeder.sent}
    (store, *_) = client.state(ids["totals"]).stores
    assert store.needs_from > 0


def test_the_stores_of_a_join_come_back_from_the_log(server: ServerProcess, tmp_path: Path) -> None:
    # In this version of its state a join has several stores in each partition.
    conf = {**settings("log"), "spark.sql.streaming.join.stateFormatVersion": "2"}
    client = server.client()
    folder = tmp_path / "job"
    watched = Snapshots(client, STORES_OF_A_JOIN * PARTITIONS)
    ids, sent = run_and_kill(server, folder, conf, watched.have_come_and_gone, "pairs")
    assert sent > PAIRED
    lose_all(folder / "checkpoints" / "pairs")
    assert finish(server, folder, queries=["pairs"], conf=conf) == ids
    rows = client.read("pairs").to_pylist()
    assert sorted(row["n"] for row in rows) == list(range(PAIRED, sent))
    assert all(row["m"] == row["n"] - PAIRED for row in rows)


def failure(server: ServerProcess, folder: Path, conf: dict[str, str]) -> str:
    """What the next run of the job says when it fails."""
    args = {"queries": ["totals"], "conf": conf, "available_now": True}
    driver = DriverProcess(server, folder, args=args)
    try:
        assert driver.wait(120) == 3, driver.said()[-4000:]
    finally:
        driver.kill()
    return str(driver.status()["error"])


def test_state_that_was_in_the_location_alone_is_missed_with_an_error(
    server: ServerProcess, tmp_path: Path
) -> None:
    conf = settings("location")
    client = server.client()
    folder = tmp_path / "job"
    ids, _ = run_and_kill(
        server,
        folder,
        conf,
        lambda query: any(marker.batch > 8 for marker in client.markers(query)),
    )
    seen = client.read("totals").num_rows
    assert client.state(ids["totals"]).stores == ()
    lose_all(folder / "checkpoints" / "totals")
    said = failure(server, folder, conf)
    assert any(name in said for name in MISSED_BY_SPARK), said
    assert client.read("totals").num_rows == seen


def test_a_snapshot_that_is_damaged_in_the_log_is_an_error_and_never_an_answer(
    server: ServerProcess, tmp_path: Path
) -> None:
    conf = settings("log")
    client = server.client()
    folder = tmp_path / "job"
    watched = Snapshots(client, PARTITIONS)
    ids, _ = run_and_kill(server, folder, conf, watched.have_come_and_gone)
    seen = client.read("totals").num_rows
    entry = client.state(ids["totals"]).stores[0].snapshot[0].entries[0]
    server.stop()
    with (
        lmdb.open(str(server.data / "log"), max_dbs=len(TABLES), map_size=1 << 40) as env,
        env.begin(write=True, db=env.open_db(b"entries")) as txn,
    ):
        stored = bytearray(txn.get(lsn_key(entry)) or b"")
        stored[-1] ^= 1
        txn.put(lsn_key(entry), bytes(stored))
    server.start()
    lose_all(folder / "checkpoints" / "totals")
    said = failure(server, folder, conf)
    assert f"the entry {entry} is damaged" in said
    assert client.read("totals").num_rows == seen
