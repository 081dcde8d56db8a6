"""Worker: durable appends over HTTP to a server with an embedded log, from few and many clients.

The server and its clients are processes of their own, on the same cores; rows are JSON lines, one
in a request, each with a producer and a sequence.
"""

from __future__ import annotations

import os
from typing import Any

from penstock.client import Client
from penstock.client.address import TOKEN_VARIABLE
from penstock.errors import Bug
from penstock.spark import server_process
from penstock_lab.experiment import worker
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.log_sizes import CLIENTS, GATEWAY_SIZES, SIZES

CLIENTS_MODULE = "penstock_lab.measure.gateway_clients"
TIMEOUT_S = 600.0
DDL = "v string"


def main(job: Job) -> dict[str, Any]:
    server = server_process.start(job.path / "data")
    os.environ[TOKEN_VARIABLE] = server.address.token
    measured: dict[str, Any] = {}
    try:
        with Client(server.address.url, server.address.token) as client:
            for size in GATEWAY_SIZES:
                for clients in CLIENTS:
                    measured[f"{size}.w{clients}"] = measure(client, job, size, clients)
    finally:
        server.stop()
    return measured


def measure(client: Client, job: Job, size: str, clients: int) -> dict[str, Any]:
    """Refuses an answer that the log does not have in the end."""
    stream = f"appends_{size}_{clients}"
    client.create(stream, DDL)
    client.append(stream, [{"v": "the first row has the server load what reads rows"}])
    options = {
        "url": client.url,
        "stream": stream,
        "clients": clients,
        "bytes": SIZES[size],
        "seconds": float(job.options["seconds"]),
    }
    answer = worker.ask(CLIENTS_MODULE, Job("clients", job.folder, options), TIMEOUT_S)
    rows = client.describe(stream).rows
    if rows != answer["sent"] + 1:
        raise Bug(f"{rows} rows are there after {answer['sent'] + 1} appends", code="wrong_answer")
    return answer


if __name__ == "__main__":
    serve(main)
