"""The room of runs that begin with a filled state: one folder, one port, one server at a time.

Every run finds the same server address and the same checkpoint folder, with what a fill had left
there: Spark processes that stay from run to run notice a server that was started again.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from penstock.client import Client
from penstock.spark import server_process

DATA, RUN, EMPTY = "data", "run", "empty"


class FilledRoom:
    """A server that is stopped, given other data, and started again. Close it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.run = folder / RUN
        """Where checkpoints are."""
        self.server: server_process.OwnServer
        self.client: Client

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        self.run.mkdir()
        # The token is made with the data, so all data here begin as one.
        self.server = server_process.start(self._folder / DATA)
        address = self.server.address
        self._port = urlsplit(address.url).port or 0
        self.client = Client(address.url, address.token, address.ca)
        self.save(self._folder / EMPTY)
        self.start_server()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.server.stop()

    def save(self, folder: Path) -> None:
        """Stop the server and copy all that is here."""
        self.server.stop()
        for part in (DATA, RUN):
            shutil.copytree(self._folder / part, folder / part)

    def put_back(self, folder: Path | None = None) -> None:
        """Start the server over a copy of what was saved; without a folder, over nothing."""
        self.server.stop()
        for part in (DATA, RUN):
            shutil.rmtree(self._folder / part, ignore_errors=True)
            shutil.copytree((folder or self._folder / EMPTY) / part, self._folder / part)
        self.start_server()

    def kill_server(self) -> None:
        """kill -9; the process is gone when this returns."""
        self.server.kill()

    def start_server(self) -> None:
        """Start over what is left, at the same address."""
        self.server = server_process.start(self._folder / DATA, port=self._port)
