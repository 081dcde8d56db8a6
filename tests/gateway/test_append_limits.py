"""What a query may append at once: told at its take-over, and held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from penstock.testing.nats_servers import NatsServers
from support.servers.http_server import ARROW, Answer, Served, ipc

KIB = 1 << 10


def limits(served: Served) -> dict[str, Any]:
    taken = served.ask("POST", "/queries/q/instances", {"run": "r"})
    assert taken.status == 200, taken.body
    return dict(taken.json()["limits"])


def put(served: Served, *sizes: int, folder: str = "state/0/1") -> Answer:
    """Files of these sizes as one request of batch 0."""
    paths = ",".join(quote(f"{folder}/{number}.changelog", safe="") for number in range(len(sizes)))
    asked = f"instance=1&batch=0&paths={paths}&sizes={','.join(map(str, sizes))}"
    return served.ask("POST", f"/queries/q/files?{asked}", bytes(sum(sizes)))


def put_rows(served: Served, *keys: int) -> Answer:
    """Pending rows of a kilobyte each, as one record batch."""
    rows = pa.record_batch({"k": pa.array(keys, pa.int64()), "v": [f"{n:01000}" for n in keys]})
    asked = "query=q&instance=1&batch=0&partition=0&attempt=0&substreams=0"
    return served.ask("POST", f"/streams/s/entries?{asked}", ipc(rows), Content_Type=ARROW)


def test_a_query_is_told_what_a_request_may_hold_and_no_more_is_taken(tmp_path: Path) -> None:
    bounds = {"entry_bytes_max": 4 * KIB, "request_bytes_max": 8 * KIB, "request_files_max": 3}
    options = [part for key, value in bounds.items() for part in ("--set", f"{key}={value}")]
    with Served(tmp_path / "data", *options) as served:
        assert limits(served) == bounds
        assert put(served, 4 * KIB, 4 * KIB).status == 200
        refused = put(served, 1, 1, 1, 1)
        assert (refused.status, refused.code) == (400, "bad_request")
        assert "4 files, and may have 3" in refused.message
        assert put(served, 4 * KIB + 1).code == "entry_too_large"
        assert put(served, 4 * KIB, 4 * KIB, 1).code == "request_too_large"


def test_before_jetstream_an_entry_is_as_large_as_a_message_of_its_servers(
    tmp_path: Path, nats: NatsServers
) -> None:
    del nats  # asked for, so that the test is skipped without a server
    payload_max = 256 * KIB
    with (
        NatsServers(tmp_path / "small", count=1, payload_max=payload_max) as small,
        Served(tmp_path / "data", "--log", small.url, "--set", "log_replicas=1") as served,
    ):
        bounds = limits(served)
        assert bounds["entry_bytes_max"] == payload_max - 64 * KIB
        assert bounds["request_files_max"] == 1_000
        # What is said of the files is in one message with the last of them.
        many = [0] * 100 + [bounds["entry_bytes_max"]]
        assert put(served, *many, folder=f"state/0/1/{'x' * 400}").status == 200
        assert put(served, bounds["entry_bytes_max"] + 1).code == "entry_too_large"


@pytest.mark.parametrize("rows", [1, 40])
def test_pending_rows_too_many_for_an_entry_are_several_in_their_order(
    tmp_path: Path, rows: int
) -> None:
    with Served(tmp_path / "data", "--set", f"entry_bytes_max={8 * KIB}") as served:
        limits(served)
        served.make()
        entries = put_rows(served, *range(rows)).json()["entries"]
        assert len(entries) >= rows / 8
        write = {"stream": "s", "partition": 0, "attempt": 0, "entries": entries}
        body = {"instance": 1, "batch": 0, "writes": [write], "commit": "e30="}
        assert served.ask("POST", "/queries/q/markers", body).status == 200
        assert served.values() == list(range(rows))
