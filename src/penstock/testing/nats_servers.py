"""A cluster of real nats-server processes with JetStream on loopback, to be killed at will."""

from __future__ import annotations

import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.testing.ports import free_port

START_S = 120.0
PAYLOAD_MAX = 8 << 20

_CONFIG = """
server_name: n{number}
listen: 127.0.0.1:{client}
http: 127.0.0.1:{http}
max_payload: {payload_max}
jetstream {{ store_dir: "{store}", max_mem: 256MB, max_file: 200GB{sync} }}
"""
_CLUSTER = """
cluster {{
  name: penstock
  listen: 127.0.0.1:{route}
  routes: [{routes}]
}}
"""


def nats_program() -> str | None:
    """The server's program, if there is one."""
    return shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")


class NatsServers:
    """`count` servers that form a cluster; one alone forms none. Leaving the `with` ends them.

    Ports and folders stay the same over a restart. Servers are named by their number from 0.
    `sync` is their `sync_interval`, such as `always`; versions before 2.10 do not know it.
    """

    def __init__(
        self,
        folder: Path,
        count: int = 3,
        *,
        program: str | None = None,
        payload_max: int = PAYLOAD_MAX,
        sync: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        executable = program or nats_program()
        if executable is None:
            raise FileNotFoundError("there is no nats-server here; install Debian's nats-server")
        self._program = executable
        self._folder = folder
        self._clock = clock
        self._payload_max = payload_max
        self._sync = "" if sync is None else f", sync_interval: {sync}"
        self._ports = [free_port() for _ in range(3 * count)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.numbers = range(count)

    @property
    def url(self) -> str:
        return "nats://" + ",".join(self.address(number) for number in self.numbers)

    def address(self, number: int) -> str:
        return f"127.0.0.1:{self._ports[3 * number]}"

    def __enter__(self) -> NatsServers:
        try:
            for number in self.numbers:
                self.start(number)
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, number: int) -> None:
        """Start a server that is not running, on what it had kept."""
        folder = self._folder / f"n{number}"
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "server.conf"
        template = _CONFIG + (_CLUSTER if len(self.numbers) > 1 else "")
        config.write_text(
            template.format(
                number=number,
                client=self._ports[3 * number],
                http=self._ports[3 * number + 1],
                route=self._ports[3 * number + 2],
                routes=", ".join(
                    f"nats://127.0.0.1:{self._ports[3 * other + 2]}" for other in self.numbers
                ),
                payload_max=self._payload_max,
                sync=self._sync,
                store=folder / "store",
            )
        )
        with (folder / "server.log").open("ab") as out:
            self._processes[number] = subprocess.Popen(
                [self._program, "-c", str(config)], stdout=out, stderr=subprocess.STDOUT
            )

    def kill(self, number: int) -> None:
        """kill -9."""
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def close(self) -> None:
        for number in list(self._processes):
            self.kill(number)

    def wait_ready(self, running: int | None = None) -> None:
        """Wait until JetStream has a leader and `running` servers, all by default, in it."""
        wanted = len(self.numbers) if running is None else running
        until = self._clock.monotonic_s() + START_S
        while not self._is_ready(wanted):
            if self._clock.monotonic_s() > until:
                said = "\n".join(self.said(number)[-2_000:] for number in self.numbers)
                raise TimeoutError(f"JetStream was not ready within {START_S:g} s:\n{said}")
            self._clock.sleep(0.05)

    def said(self, number: int) -> str:
        """Output of a server, as far as it was written."""
        file = self._folder / f"n{number}" / "server.log"
        return file.read_text("utf-8", "replace") if file.exists() else ""

    def leader(self, stream: str) -> int | None:
        """The server that leads the stream, if there is one."""
        for replica in self._replicas(stream):
            if leader := replica.get("cluster", {}).get("leader", ""):
                return int(leader.removeprefix("n"))
        return None

    def messages(self, stream: str) -> list[int]:
        """Number of messages of the stream that each running server has."""
        return [replica["state"]["messages"] for replica in self._replicas(stream)]

    def _replicas(self, stream: str) -> Iterator[dict[str, Any]]:
        for number in self._processes:
            for account in self._ask(number, "jsz?streams=true").get("account_details", []):
                yield from (
                    replica
                    for replica in account.get("stream_detail", [])
                    if replica["name"] == stream
                )

    def _is_ready(self, wanted: int) -> bool:
        if len(self.numbers) == 1:
            return bool(self._ask(0, "healthz"))
        for number in self._processes:
            cluster = self._ask(number, "jsz").get("meta_cluster", {})
            peers = [each for each in cluster.get("replicas", []) if each.get("current")]
            if cluster.get("leader") == f"n{number}":
                return len(peers) + 1 >= wanted
        return False

    def _ask(self, number: int, path: str) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._ports[3 * number + 1]}/{path}"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                body = msgspec.json.decode(answer.read())
        except (OSError, urllib.error.URLError, msgspec.DecodeError):
            return {}
        return body if isinstance(body, dict) else {}
