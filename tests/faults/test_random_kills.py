"""kill -9 of the driver, anywhere: nothing lost, nothing twice, after every recovery."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.exactly_once import Feeder, check
from support.spark.kill_driver import (
    START_S,
    finish,
    marked_all,
    wait_for_commits,
    wait_for_queries,
)
from support.spark.mechanisms_off import EARLY_ANSWERS, PLAIN_BATCHES

SEED = 20261115
KILLS = 10
QUERIES = ["totals", "copies", "windows", "pairs"]
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
KEY = "spark.penstock.prefetch"
# A cache with no room for all keys: in every batch there is something to fetch.
SMALL_CACHE = {f"{KEY}.cache.bytes": "2000", f"{KEY}.hot.threshold": "255"}
SWITCHED: tuple[dict[str, str], ...] = (
    {},
    {"spark.penstock.batch.switches": "false"},
    EARLY_ANSWERS,
    {"spark.penstock.inline.bytes": "0"},
    PLAIN_BATCHES,
    {"spark.penstock.batch.hadoopConf": "spark"},
    {**PLAIN_BATCHES, **EARLY_ANSWERS},
    {**SMALL_CACHE, KEY: "B"},
    {**SMALL_CACHE, KEY: "A", f"{KEY}.cache.writes": "back"},
)
"""Settings of the runs in turn: what one with some of them leaves, one with others goes on from."""


def test_ten_kills_at_random_moments_under_load(server: ServerProcess, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    client = server.client()
    folder = tmp_path / "job"
    ids: dict[str, str] = {}
    with Feeder(server.client()) as feeder:
        for number in range(KILLS):
            conf = SWITCHED[number % len(SWITCHED)]
            driver = DriverProcess(server, folder, args={"conf": conf, "queries": QUERIES})
            before = marked_all(client, ids)
            ids = wait_for_queries(driver, len(QUERIES))
            # Past the recovery: each query has committed at least one batch of this run.
            wait_for_commits(client, ids, before)
            if KEY in conf:
                wait_for_hints(driver)
            time.sleep(chance.uniform(0.0, 0.8))
            driver.kill()
            check(client, ids)
        feeder.stop()
    assert finish(server, folder, rows_per_batch=100_000, queries=QUERIES) == ids
    assert check(client, ids, is_at_rest=True) == dict.fromkeys(QUERIES, feeder.sent)
    assert join_formats(folder / "checkpoints" / "pairs") == {"3"}
    assert all(client.query(q).instance == KILLS + 1 for q in ids.values())


def join_formats(checkpoint: Path) -> set[str]:
    """Formats of a join's state that the batches in the checkpoint location were made with."""
    offsets = [log for log in (checkpoint / "offsets").iterdir() if log.name.isdigit()]
    metadata = [json.loads(log.read_text().splitlines()[1]) for log in offsets]
    return {each["conf"].get(JOIN_FORMAT, "none") for each in metadata}


def wait_for_hints(driver: DriverProcess) -> None:
    """Returns once tasks have read state that was fetched because of hints."""

    def are_used() -> bool:
        assert driver.is_running(), driver.said()[-4000:]
        hints = driver.status().get("hints")
        return isinstance(hints, dict) and hints.get("used", 0) > 0

    wait_until("what was hinted is read", are_used, START_S)
