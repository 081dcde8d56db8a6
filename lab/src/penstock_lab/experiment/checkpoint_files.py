"""Sizes of the snapshots of state that Spark has put into a checkpoint location."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SNAPSHOT = ".zip"
"""Every snapshot is an archive named by its version, and files of RocksDB that it refers to."""


class StateFile(NamedTuple):
    """A file of one state store, by when it was written."""

    written_ns: int
    size: int
    version: int | None
    """Of the snapshot that this file completes; None for one that a snapshot refers to."""


def snapshot_bytes(location: Path) -> list[int]:
    """Bytes that each version of the state brought to the location, all stores together, from the
    first version on. A file that several snapshots refer to counts for the first of them."""
    totals: dict[int, int] = {}
    for folder in sorted({archive.parent for archive in location.rglob(f"*{SNAPSHOT}")}):
        for version, size in by_version(_files(folder)).items():
            totals[version] = totals.get(version, 0) + size
    return [totals[version] for version in sorted(totals)]


def by_version(files: Iterable[StateFile]) -> dict[int, int]:
    """The bytes that came with each version of a store: its files are there before its archive."""
    sizes: dict[int, int] = {}
    waiting = 0
    # A clock of the kernel may give an archive and a file of it the same moment.
    for file in sorted(files, key=lambda file: (file.written_ns, file.version is not None)):
        waiting += file.size
        if file.version is not None:
            sizes[file.version] = waiting
            waiting = 0
    return sizes


def _files(folder: Path) -> list[StateFile]:
    made = []
    for path in folder.rglob("*"):
        # A folder below may be that of another store, whose files are its own.
        is_other = path.parent != folder and any(path.parent.glob(f"*{SNAPSHOT}"))
        if path.is_file() and not is_other and not path.name.startswith("."):
            status = path.stat()
            made.append(StateFile(status.st_mtime_ns, status.st_size, _version(path)))
    return made


def _version(path: Path) -> int | None:
    """The number that an archive's name begins with; an id may follow it."""
    number = path.stem.partition("_")[0]
    return int(number) if path.suffix == SNAPSHOT and number.isdigit() else None
