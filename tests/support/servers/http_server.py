"""A real `penstock serve` process and a plain HTTP client for it, for tests of the gateway."""

from __future__ import annotations

import http.client
import io
import json
import os
import resource
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner

from penstock.cli.serve import serve
from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = "application/x-ndjson"
START_S = 120.0
"""How long a server may take to start or to end; only one that fails takes it."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json()["error"]["code"])

    @property
    def message(self) -> str:
        return str(self.json()["error"]["message"])

    def table(self) -> pa.Table:
        with pa.ipc.open_stream(pa.py_buffer(self.body)) as reader:
            return reader.read_all()


def ipc(rows: pa.Table | pa.RecordBatch | Sequence[pa.RecordBatch]) -> bytes:
    """An Arrow IPC stream of a table, a batch, or several batches as they are."""
    sink = io.BytesIO()
    if isinstance(rows, pa.Table):
        batches = rows.to_batches()
    else:
        batches = [rows] if isinstance(rows, pa.RecordBatch) else list(rows)
    schema = rows.schema if not isinstance(rows, Sequence) else batches[0].schema
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


class Served:
    """One server process on one folder. Leaving the `with` ends it."""

    def __init__(
        self,
        data: Path,
        *options: str,
        context: ssl.SSLContext | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.data = data
        self._context = context
        self.process = start(data, *options, environment=environment)
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while not self._is_up():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise AssertionError(self.process.communicate()[1])
            time.sleep(0.01)

    def _is_up(self) -> bool:
        try:
            server_file = json.loads((self.data / "server.json").read_text())
        except (OSError, ValueError):
            return False
        self.url, self.token = server_file["url"], server_file["token"]
        return bool(server_file["pid"] == self.process.pid)

    def append_head(self, size: int, more: str = "") -> str:
        """The head of a request that appends so many bytes of rows to the stream `s`."""
        return (
            f"POST /v1/streams/s/rows HTTP/1.1\r\n{more}Host: here\r\n"
            f"Authorization: Bearer {self.token}\r\n"
            f"Content-Type: application/x-ndjson\r\nContent-Length: {size}\r\n\r\n"
        )

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=START_S)
        finally:
            self.process.kill()

    def limit_files(self, file_bytes: int | None) -> None:
        """No file of the server grows past `file_bytes`, until it is told None."""
        hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)[1]
        soft = hard if file_bytes is None else file_bytes
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.communicate()

    def connection(self) -> http.client.HTTPConnection:
        address = self.url.partition("//")[2]
        if self._context is not None:
            return http.client.HTTPSConnection(address, timeout=START_S, context=self._context)
        return http.client.HTTPConnection(address, timeout=START_S)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | dict[str, Any] | None = None,
        token: str | None = "",
        **headers: str,
    ) -> Answer:
        """One request on a connection of its own. `token` "" is the server's, None is none."""
        sent = {PROTOCOL_HEADER: str(PROTOCOL)}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        connection = self.connection()
        try:
            data = json.dumps(body) if isinstance(body, dict) else body
            connection.request(method, f"/v1{path}", data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.headers), answer.read())
        finally:
            connection.close()

    def make(self, name: str = "s", ddl: str = "k bigint, v string", **more: Any) -> Answer:
        return self.ask("PUT", f"/streams/{name}", {"ddl": ddl, **more})

    def append(self, rows: pa.Table, name: str = "s", query: str = "", **headers: str) -> Answer:
        path = f"/streams/{name}/rows{query}"
        return self.ask("POST", path, ipc(rows), Content_Type=ARROW, **headers)

    def lines(self, text: str, name: str = "s", **headers: str) -> Answer:
        path = f"/streams/{name}/rows"
        return self.ask("POST", path, text.encode(), Content_Type=JSON_LINES, **headers)

    def values(self, name: str = "s", column: str = "k") -> list[Any]:
        """Every committed value of a column, read page by page in commit order."""
        values: list[Any] = []
        query = "?after=0"
        while True:
            answer = self.ask("GET", f"/streams/{name}/rows{query}")
            assert answer.status == 200, answer.body
            values += answer.table().column(column).to_pylist()
            cursor = answer.headers.get("Penstock-Cursor")
            if cursor is None:
                return values
            query = f"?after=0&until={answer.headers['Penstock-Position']}&cursor={cursor}"

    def values_after(self, name: str, column: str, after: int) -> list[Any]:
        """The values of a column in the first page after a position."""
        answer = self.ask("GET", f"/streams/{name}/rows?after={after}")
        return list(answer.table().column(column).to_pylist())


def start(
    data: Path, *options: str, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """`penstock serve`, not waited for."""
    return subprocess.Popen(
        [sys.executable, "-m", "penstock.cli.serve", "--data", str(data), *options],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refusal(data: Path, *options: str) -> str:
    """What a server that does not start says. Run in this process, which is much quicker."""

    def late(*_: object) -> None:
        raise AssertionError("the server was not refused")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(int(START_S))
    try:
        result = CliRunner().invoke(serve, ["--data", str(data), *options])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: "), result.output
    return str(result.output)


def table(*keys: int, value: str = "x") -> pa.Table:
    return pa.table(
        {"k": pa.array(keys, pa.int64()), "v": pa.array([value] * len(keys), pa.string())}
    )
