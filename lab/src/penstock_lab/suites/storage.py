"""A storage library for the embedded log: LMDB or SQLite?

Both are asked for the same two things, with every commit durable before it is counted: appending
entries under a growing key, and reading them back in order. Other work on the machine and its disk
changes the answer, so `compare` measures the libraries in turns, several rounds of it, and keeps
the spread beside the median. Run `python -m penstock_lab.suites.storage FOLDER` to print the rows.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import lmdb
import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock

SIZES = (100, 16 << 10, 100 << 10, 1 << 20)
GROUPS = (1, 16)
BUDGET_BYTES = 48 << 20
COMMITS_MAX = 100
ROUNDS = 5


class Row(msgspec.Struct, frozen=True):
    """One library at one entry size and one number of entries per durable commit.

    `commit_ms` is the mean of a round; of several rounds the row holds the medians, and the least
    and greatest `commit_ms`.
    """

    library: str
    entry_bytes: int
    entries_per_commit: int
    commit_ms: float
    commit_ms_least: float
    commit_ms_greatest: float
    read_mb_per_s: float


class Store(Protocol):
    """The two acts that are measured."""

    def append(self, first: int, payloads: list[bytes]) -> None:
        """Put the payloads under `first`, `first + 1`, …; durable when it returns."""
        ...

    def read_all(self) -> int:
        """Read every payload in key order and return how many bytes were seen."""
        ...

    def close(self) -> None: ...


class LmdbStore:
    """LMDB as the log opens it: no write map, a sync with every commit."""

    def __init__(self, folder: Path) -> None:
        self._env = lmdb.open(str(folder), map_size=64 << 30, max_dbs=1, writemap=False)
        self._table = self._env.open_db(b"entries")

    def append(self, first: int, payloads: list[bytes]) -> None:
        with self._env.begin(write=True, db=self._table) as txn:
            for place, payload in enumerate(payloads, first):
                txn.put(place.to_bytes(8, "big"), payload, append=True)

    def read_all(self) -> int:
        seen = 0
        with self._env.begin(db=self._table, buffers=True) as txn, txn.cursor() as cursor:
            for value in cursor.iternext(keys=False, values=True):
                seen += len(bytes(value))
        return seen

    def close(self) -> None:
        self._env.close()


class SqliteStore:
    """SQLite with a write-ahead log and `synchronous=FULL`; NORMAL would not be durable."""

    def __init__(self, folder: Path) -> None:
        self._base = sqlite3.connect(folder / "log.sqlite", isolation_level=None)
        self._base.execute("pragma journal_mode=wal")
        self._base.execute("pragma synchronous=full")
        self._base.execute("create table entries (lsn integer primary key, payload blob not null)")

    def append(self, first: int, payloads: list[bytes]) -> None:
        self._base.execute("begin immediate")
        self._base.executemany("insert into entries values (?, ?)", enumerate(payloads, first))
        self._base.execute("commit")

    def read_all(self) -> int:
        rows = self._base.execute("select payload from entries order by lsn")
        return sum(len(payload) for (payload,) in rows)

    def close(self) -> None:
        self._base.close()


LIBRARIES: dict[str, Callable[[Path], Store]] = {"lmdb": LmdbStore, "sqlite": SqliteStore}


def measure(
    library: str, entry_bytes: int, group: int, folder: Path, clock: Clock = SYSTEM_CLOCK
) -> Row:
    """Append within a budget of bytes and commits, then read everything back, in `folder`."""
    place = Path(tempfile.mkdtemp(prefix=f"{library}-", dir=folder))
    try:
        store = LIBRARIES[library](place)
        commits = max(4, min(COMMITS_MAX, BUDGET_BYTES // (entry_bytes * group)))
        payloads = [os.urandom(entry_bytes) for _ in range(group)]
        began = clock.monotonic_s()
        for commit in range(commits):
            store.append(1 + commit * group, payloads)
        append_s = clock.monotonic_s() - began
        began = clock.monotonic_s()
        seen = store.read_all()
        read_s = clock.monotonic_s() - began
        store.close()
    finally:
        shutil.rmtree(place)
    if seen != commits * group * entry_bytes:
        raise AssertionError(f"{library} gave back {seen} bytes of what was appended")
    commit_ms = append_s / commits * 1e3
    return Row(library, entry_bytes, group, commit_ms, commit_ms, commit_ms, seen / read_s / 1e6)


def summary(rounds: list[Row]) -> Row:
    """Medians of several rounds of the same measurement, with the spread."""
    commit_ms = [row.commit_ms for row in rounds]
    return Row(
        rounds[0].library,
        rounds[0].entry_bytes,
        rounds[0].entries_per_commit,
        statistics.median(commit_ms),
        min(commit_ms),
        max(commit_ms),
        statistics.median(row.read_mb_per_s for row in rounds),
    )


def compare(folder: Path, sizes: tuple[int, ...] = SIZES, rounds: int = ROUNDS) -> list[Row]:
    """Every library at every size and group; the libraries take turns within each round."""
    summaries = []
    for size in sizes:
        for group in GROUPS:
            rows: dict[str, list[Row]] = {library: [] for library in LIBRARIES}
            for _ in range(rounds):
                for library in LIBRARIES:
                    rows[library].append(measure(library, size, group, folder))
            summaries += [summary(rows[library]) for library in LIBRARIES]
    return summaries


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir())
    print(
        "| library | entry bytes | entries per commit | commit ms | least to greatest | read MB/s |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in compare(folder):
        print(
            f"| {row.library} | {row.entry_bytes:,} | {row.entries_per_commit} "
            f"| {row.commit_ms:.2f} | {row.commit_ms_least:.2f} to {row.commit_ms_greatest:.2f} "
            f"| {row.read_mb_per_s:,.0f} |"
        )


if __name__ == "__main__":
    main()
