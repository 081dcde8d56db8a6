"""A log is copied while its server runs, and another server goes on from the copy."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from penstock.client import Client
from penstock.errors import BadCall, Damaged
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.store.backup import restore, write_backup
from penstock.settings.server import Settings
from support.servers.http_server import Served, table
from support.servers.processes import wait_until


def client_of(served: Served) -> Client:
    return Client(served.url, served.token)


def test_a_backup_made_under_load_is_a_log_of_one_moment(tmp_path: Path) -> None:
    stop = threading.Event()
    done = [0]
    with Served(tmp_path / "data") as served:
        served.make()

        def load() -> None:
            while not stop.is_set():
                served.append(table(*range(done[0], done[0] + 50)))
                done[0] += 50

        writer = threading.Thread(target=load)
        writer.start()
        try:
            wait_until("rows are there", lambda: done[0] >= 200)
            write_backup(tmp_path / "backup", client_of(served).backup())
        finally:
            stop.set()
            writer.join()
    restored = restore(tmp_path / "backup", tmp_path / "again", Settings())
    assert restored.streams == 1
    log = EmbeddedLog.open(tmp_path / "again")
    try:
        invariants.check(log)
    finally:
        log.close()
    with Served(tmp_path / "again") as served:
        values = served.values()
        assert values == list(range(len(values)))
        assert 200 <= len(values) <= done[0]
        served.append(table(-1))
        assert served.values() == [*values, -1]


def test_positions_after_the_end_of_a_backup_are_refused_by_name(tmp_path: Path) -> None:
    with Served(tmp_path / "data") as served:
        served.make()
        first = served.append(table(1)).json()["position"]
        served.ask("POST", "/queries/q/instances", {"run": "r"})
        write_backup(tmp_path / "backup", client_of(served).backup())
        lost = served.append(table(2)).json()["position"]
    restore(tmp_path / "backup", tmp_path / "again", Settings())
    with Served(tmp_path / "again") as served:
        past = served.ask("GET", f"/streams/s/rows?after={lost}")
        assert (past.status, past.code) == (400, "position_past_end")
        assert "restored from a backup" in past.message
        new = served.append(table(3)).json()["position"]
        # New entries do not take the places of those that are lost.
        assert new > lost + 1_000_000
        gone = served.ask("GET", f"/streams/s/rows?after={lost}")
        assert (gone.status, gone.code) == (400, "position_past_end")
        assert f"ends at {first + 1}" in gone.message
        assert served.ask("GET", f"/streams/s/rows?after={first}").table()["k"].to_pylist() == [3]
        # A run from after the backup could have had any instance up to now.
        marker = {"instance": 2, "batch": 0, "writes": []}
        assert served.ask("POST", "/queries/q/markers", marker).code == "fenced"
        assert served.ask("POST", "/queries/q/instances", {"run": "r"}).code == "fenced"
        taken = served.ask("POST", "/queries/q/instances", {"run": "r2"}).json()
        assert taken["instance"] > 1_000


def test_nothing_is_written_over(tmp_path: Path) -> None:
    with Served(tmp_path / "data") as served:
        served.make()
        write_backup(tmp_path / "backup", client_of(served).backup())
        with pytest.raises(BadCall, match="not an empty folder"):
            write_backup(tmp_path / "backup", client_of(served).backup())
    with pytest.raises(BadCall, match="not an empty folder"):
        restore(tmp_path / "backup", tmp_path / "data", Settings())
    (tmp_path / "nothing").mkdir()
    with pytest.raises(BadCall, match="is not a backup"):
        restore(tmp_path / "nothing", tmp_path / "again", Settings())


def test_half_a_backup_is_refused(tmp_path: Path) -> None:
    with Served(tmp_path / "data") as served:
        served.make()
        for _ in range(50):
            served.append(table(*range(1_000)))
        whole = b"".join(client_of(served).backup())
    with pytest.raises(Damaged):
        write_backup(tmp_path / "half", [whole[: len(whole) // 2]])
    with pytest.raises(Damaged):
        write_backup(tmp_path / "none", [b"no log at all" * 1_000])
    assert not (tmp_path / "half" / "format.json").exists()
