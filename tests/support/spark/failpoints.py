"""Failpoints that are chosen while a job runs, in its driver and its executors alike."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path


class Points:
    """A folder that every process of the job watches; see Failpoint.scala."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder

    def hold(self, point: str, queries: Iterable[str], only: str = "") -> None:
        """From now on threads of these queries or runs stand still there.

        `only` is empty, or `pid=process` or `batch=number`.
        """
        for folder in self._folders(point, queries, only):
            folder.mkdir(exist_ok=True)

    def held(self, point: str, queries: Iterable[str], only: str = "") -> dict[int, int]:
        """The batch at which each process stands still there."""
        files = (
            file for folder in self._folders(point, queries, only) for file in folder.glob("[0-9]*")
        )
        batches = {int(file.name): file.read_text() for file in files}
        return {process: int(batch) for process, batch in batches.items() if batch}

    def let_go(self, point: str = "") -> None:
        """Everyone goes on; a file that is being written again does not keep its folder."""
        for folder in self.folder.glob(f"{point}*@*"):
            gone = folder.rename(folder.with_name(folder.name.replace("@", "-")))
            shutil.rmtree(gone, ignore_errors=True)

    def _folders(self, point: str, queries: Iterable[str], only: str) -> list[Path]:
        return [self.folder / f"{point}@{query}{'@' * bool(only)}{only}" for query in queries]
