"""The checkpoint store of aligned checkpoints: a file for each task and checkpoint."""

from __future__ import annotations

import os
from pathlib import Path


class CheckpointStore:
    """Checkpoints as files of a folder, each whole or not there, durable when `keep` returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, task: str, epoch: int, snapshot: bytes) -> None:
        """Keep this one and the one before it, which may be the last complete one."""
        path = self._path(task, epoch)
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            out.write(snapshot)
            out.flush()
            os.fsync(out.fileno())
        part.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._path(task, epoch - 2).unlink(missing_ok=True)

    def load(self, task: str, epoch: int) -> bytes:
        return self._path(task, epoch).read_bytes()

    def _path(self, task: str, epoch: int) -> Path:
        return self._folder / f"{task}.{epoch}"
