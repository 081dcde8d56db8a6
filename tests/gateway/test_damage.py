"""Bytes that changed on disk stop the server with a sentence; they never change an answer."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from support.servers.http_server import ARROW, Served, ipc, refusal, table

DAMAGED = "to-be-damaged" * 500


def flip(data: Path, content: bytes) -> None:
    """Change one byte of `content`, which is long enough to have pages of its own: no old copy."""
    file = data / "log" / "data.mdb"
    stored = bytearray(file.read_bytes())
    at = stored.find(content)
    assert stored.count(content) == 1
    stored[at + len(content) // 2] ^= 0xFF
    file.write_bytes(stored)


def fill(data: Path) -> None:
    """Appends of 1 to 6 with a producer; the fourth holds the text to be damaged."""
    with Served(data) as served:
        served.make()
        for number in range(1, 7):
            value = DAMAGED if number == 4 else "x"
            headers = {"Penstock_Producer": "p", "Penstock_Sequence": str(number)}
            assert served.append(table(number, value=value), **headers).status == 200


def test_a_damaged_end_is_refused_and_cut_off_when_told_to(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data)
    flip(data, DAMAGED.encode())
    said = refusal(data)
    assert "damaged from entry 4 on" in said
    assert "and 2 whole entries follow it" in said
    assert "restore the data folder from a backup" in said
    assert "--cut-damaged-tail" in said
    with Served(data, "--cut-damaged-tail") as served:
        assert served.values() == [1, 2, 3]
        stream = served.ask("GET", "/streams/s").json()
        assert (stream["latest"], stream["rows"]) == (3, 3)
        headers = {"Penstock_Producer": "p", "Penstock_Sequence": "3"}
        assert served.append(table(3), **headers).json()["duplicate"]
        headers["Penstock_Sequence"] = "4"
        again = served.append(table(40), **headers).json()
        assert not again["duplicate"]
        assert again["position"] == 7, "places that were removed are not used again"
        served.process.terminate()
        assert "removed the entries 4 to 6 (3 of them)" in served.process.communicate()[1]
    with Served(data) as served:
        assert served.values() == [1, 2, 3, 40]


def test_an_end_of_which_nothing_is_whole_is_not_cut_off_unasked(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data) as served:
        served.make()
        served.append(table(1))
        served.append(table(2, value=DAMAGED))
    flip(data, DAMAGED.encode())
    assert "damaged from entry 2 on" in refusal(data)
    assert "and no whole entry follows it" in refusal(data)


def test_a_cut_puts_queries_back_to_their_last_marker_and_fences_them(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def mark(served: Served, batch: int, value: str) -> None:
        path = f"/streams/s/entries?query=q&instance=1&batch={batch}&partition=0&attempt=0"
        rows = ipc(table(batch, value=value))
        sent = served.ask("POST", f"{path}&substreams=0", rows, Content_Type=ARROW)
        write = {"stream": "s", "partition": 0, "attempt": 0, "entries": sent.json()["entries"]}
        body = {"instance": 1, "batch": batch, "writes": [write]}
        assert served.ask("POST", "/queries/q/markers", body).status == 200

    with Served(data) as served:
        served.make()
        served.ask("POST", "/queries/q/instances", {"run": "r1"})
        for batch in range(3):
            mark(served, batch, DAMAGED if batch == 1 else "x")
    flip(data, DAMAGED.encode())
    assert "damaged from entry 4 on" in refusal(data)
    with Served(data, "--cut-damaged-tail") as served:
        assert served.values() == [0]
        query = served.ask("GET", "/queries/q").json()
        assert (query["instance"], query["marker"]["batch"]) == (2, 0)
        stale = {"instance": 1, "batch": 3, "writes": []}
        assert served.ask("POST", "/queries/q/markers", stale).code == "fenced"
        taken = served.ask("POST", "/queries/q/instances", {"run": "r2"}).json()
        assert (taken["instance"], taken["marker"]["batch"]) == (3, 0)
        again = {"instance": 3, "batch": 1, "writes": []}
        assert served.ask("POST", "/queries/q/markers", again).status == 200


def test_damage_found_while_reading_is_an_error_and_not_other_rows(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data)
    flip(data, DAMAGED.encode())
    with Served(data, "--set", "verify_entries_max=2") as served:
        answer = served.ask("GET", "/streams/s/rows?after=0")
        assert (answer.status, answer.code) == (500, "damaged")
        assert "the entry 4 is damaged" in answer.message
        assert answer.json()["error"]["act"] == "restore the data"
        rest = served.ask("GET", "/streams/s/rows?after=4")
        assert rest.table().column("k").to_pylist() == [5, 6]


def test_a_file_that_was_cut_short_is_refused_before_it_is_mapped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data) as served:
        served.make()
        served.append(pa.table({"k": range(20_000), "v": ["x" * 100] * 20_000}))
    file = data / "log" / "data.mdb"
    os.truncate(file, file.stat().st_size - (1 << 20))
    said = refusal(data)
    assert "bytes shorter than the pages it holds" in said
    assert "restore the data folder from a backup" in said
    os.truncate(file, 100)
    assert "restore the data folder from a backup" in refusal(data)


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data)
    (data / "log" / "data.mdb").write_bytes(b"something else" * 10_000)
    assert "does not begin as a log does" in refusal(data)
