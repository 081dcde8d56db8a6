"""Worker: how soon a server answers one client while it has a crowd of others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pyarrow as pa

from penstock.client import Client
from penstock.client.address import TOKEN_VARIABLE
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import TryAgain
from penstock.spark import server_process
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.percentiles import percentile
from penstock_lab.processes import tail

CROWD_MODULE = "penstock_lab.measure.crowd_clients"
SUBSTREAMS = 250
TAGS_OF_RECORD = 1_000
ROWS = 20_000
ROW_BYTES = 500
OWN = "own"


def main(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    options = job.options
    streams = [f"crowded_{number}" for number in range(int(options["substreams"]) // SUBSTREAMS)]
    server = server_process.start(job.path / "data")
    os.environ[TOKEN_VARIABLE] = server.address.token
    try:
        with Client(server.address.url, server.address.token) as client:
            fill(client, streams, int(options["tags"]))
            asked = {**options, "url": client.url, "streams": streams}
            log = job.path / "crowd.log"
            with log.open("wb") as errors:
                crowd = subprocess.Popen(
                    [sys.executable, "-m", CROWD_MODULE, json.dumps(asked)],
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            try:
                if crowd.stdout is None or not crowd.stdout.readline():
                    raise TryAgain(f"the crowd ended; it said: {tail(log)}", code="worker_failed")
                return ask_on(client, float(options["seconds"]), clock)
            finally:
                crowd.kill()
                crowd.communicate()
    finally:
        server.stop()


def fill(client: Client, streams: list[str], tags: int) -> None:
    """Rows in every substream, a record under every tag, and a stream for who asks."""
    rows = pa.table(
        {"k": pa.array(range(ROWS), pa.int64()), "v": pa.array(["x" * ROW_BYTES] * ROWS)}
    )
    for stream in streams:
        client.create(stream, "k bigint, v string", substreams=SUBSTREAMS, key="k")
        client.append(stream, rows)
    for first in range(0, tags, TAGS_OF_RECORD):
        client.append_record([f"tag-{first + n}" for n in range(TAGS_OF_RECORD)], b"record")
    client.create(OWN, "v string")


def ask_on(client: Client, seconds: float, clock: Clock) -> dict[str, Any]:
    """Append, ask for the position, and so on; how long each took."""
    end_s = clock.monotonic_s() + seconds
    took_ms: list[float] = []
    while clock.monotonic_s() < end_s:
        for ask in (
            lambda: client.append_bytes(OWN, b'{"v": "a row"}\n', "application/x-ndjson"),
            lambda: client.position(OWN),
        ):
            began_s = clock.monotonic_s()
            ask()
            took_ms.append((clock.monotonic_s() - began_s) * 1000)
    return {
        "crowd_ms_p50": percentile(took_ms, 50) or 0.0,
        "crowd_ms_p99": percentile(took_ms, 99) or 0.0,
        "asked": len(took_ms),
    }


if __name__ == "__main__":
    serve(main)
