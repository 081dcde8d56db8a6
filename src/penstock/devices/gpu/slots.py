"""Slots of a GPU: how many workers of one user may be at a device, over all processes of a machine.

A slot is a locked file in a folder for temporary files. The kernel gives the lock back when a
worker ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path


def slots_folder() -> Path:
    """The folder of this user's slots."""
    return Path(tempfile.gettempdir()) / f"penstock-gpus-{os.getuid()}"


class Slot:
    """A taken slot; it is free again when it is closed or its process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def try_slot(device: str, workers: int, folder: Path | None = None) -> Slot | None:
    """A slot at a device that so many workers may be at; None if all are taken."""
    place = slots_folder() if folder is None else folder
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "-" for letter in device)
    for number in range(workers):
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(place / f"{name}.{number}", flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
        else:
            return Slot(descriptor)
    return None
