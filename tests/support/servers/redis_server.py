"""A Redis server of its own for a test."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from penstock.testing.ports import free_port
from support.servers.processes import START_S, wait_until


class RedisServer:
    """Debian's redis-server on a free loopback port, without files."""

    def __init__(self, program: str, folder: Path, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self.url = f"redis://127.0.0.1:{self.port}/0"
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        with (folder / "redis.log").open("wb") as out:
            self._process = subprocess.Popen(
                [*command, "--appendonly", "no", "--dir", str(folder)],
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @staticmethod
    def program() -> str | None:
        return shutil.which("redis-server")

    def __enter__(self) -> RedisServer:
        wait_until("redis answers", self._answers)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(START_S)

    def _answers(self) -> bool:
        assert self._process.poll() is None
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0
