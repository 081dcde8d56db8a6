"""A log that is full: what frees space still works, and then there is room again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest

from penstock.errors import TryAgain
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.embedded.writer import Writer
from penstock.log.operations import AppendRecord, Trimmed, TrimTag
from penstock.model.ids import Lsn
from penstock.settings.server import Settings

MIB = 1 << 20
STEP = 250
"""Entries that a trim removes at a time, as the server does."""


def record(size: int) -> AppendRecord:
    return AppendRecord(("a",), bytes(size))


def fill(log: EmbeddedLog, size: int) -> list[Lsn]:
    """Append in groups until one is refused; the places of what was appended."""
    places: list[Lsn] = []
    while True:
        futures = [log.submit(record(size)) for _ in range(16)]
        for future in futures:
            refusal = future.exception(60)
            if refusal is None:
                places.append(future.result(0))
        if refusal is not None:
            assert isinstance(refusal, TryAgain)
            assert refusal.code == "storage_full"
            assert "has reached map_bytes, 3145728; raise it, or trim it," in refusal.message
            return places


@pytest.mark.parametrize("size", [3_000, 100_000])
def test_a_full_map_is_trimmed_and_takes_appends_again(tmp_path: Path, size: int) -> None:
    settings = Settings(map_bytes=3 * MIB, reserve_bytes=MIB)
    log = EmbeddedLog.open(tmp_path / "data", settings)
    places = fill(log, size)
    for _ in range(2):
        half = len(places) // 2
        for step in (*range(0, half, STEP), half):
            gone: Trimmed = log.run(TrimTag("a", places[step]))
            assert gone.entries > 0
        more = fill(log, size)
        assert len(more) > half // 2, "what was trimmed is room again"
        places = places[half + 1 :] + more
    assert (tmp_path / "data" / "log" / "data.mdb").stat().st_size <= 4 * MIB
    invariants.check(log)
    log.close()


class FullDisk:
    """A disk without room for a transaction, but for what the reserve gives back."""

    def __init__(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reserve = data / "reserve"
        self.is_full = True
        transact = Writer._transact

        def transacted(writer: Writer, *rest: Any) -> Any:
            if self.is_full and self.reserve.exists():
                raise lmdb.DiskError("mdb_txn_commit: No space left on device")
            return transact(writer, *rest)

        def allocate(*_: object) -> None:
            if self.is_full:
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(Writer, "_transact", transacted)
        monkeypatch.setattr("os.posix_fallocate", allocate)


@pytest.fixture
def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], FullDisk]:
    return lambda: FullDisk(tmp_path / "data", monkeypatch)


def test_on_a_full_disk_a_trim_uses_the_reserve_and_appends_wait_until_it_is_back(
    tmp_path: Path, full_disk: Callable[[], FullDisk]
) -> None:
    log = EmbeddedLog.open(tmp_path / "data", Settings(reserve_bytes=MIB))
    reserve = tmp_path / "data" / "reserve"
    assert reserve.stat().st_blocks * 512 >= MIB, "really taken, not a hole in a file"
    places = [log.run(record(3_000)) for _ in range(20)]
    disk = full_disk()
    with pytest.raises(TryAgain, match=r"bytes free on its disk") as caught:
        log.run(record(10))
    assert caught.value.code == "storage_full"
    assert reserve.exists(), "kept for what frees space"
    assert log.run(TrimTag("a", places[9])).entries == 10
    assert not reserve.exists()
    with pytest.raises(TryAgain, match="the reserve"):
        log.run(record(10))
    disk.is_full = False
    assert log.run(record(10)) > places[-1]
    assert reserve.exists()
    invariants.check(log)
    log.close()


def test_without_a_reserve_on_disk_what_was_trimmed_inside_the_file_is_used(
    tmp_path: Path, full_disk: Callable[[], FullDisk]
) -> None:
    log = EmbeddedLog.open(tmp_path / "data", Settings(reserve_bytes=64 << 10))
    places = [log.run(record(100_000)) for _ in range(20)]
    full_disk()
    log.run(TrimTag("a", places[15]))
    assert not (tmp_path / "data" / "reserve").exists()
    assert log.run(record(10)) > places[-1], "pages of the file itself are free"
    log.close()
