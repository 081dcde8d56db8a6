"""Bytes of the snapshots in a checkpoint location, by version."""

from __future__ import annotations

import os
from pathlib import Path

from penstock_lab.experiment.checkpoint_files import StateFile, by_version, snapshot_bytes


def put(path: Path, size: int, at_s: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (at_s, at_s))


def test_a_file_counts_for_the_first_snapshot_that_was_complete_after_it() -> None:
    files = [
        StateFile(1, 100, None),
        StateFile(2, 10, 1),
        StateFile(3, 200, None),
        # A file and the archive that refers to it may have been written in one moment.
        StateFile(4, 20, 2),
        StateFile(4, 300, None),
        StateFile(5, 7, None),
    ]
    assert by_version(files) == {1: 110, 2: 520}


def test_versions_are_summed_over_all_stores_of_a_location(tmp_path: Path) -> None:
    for partition in ("0", "1"):
        store = tmp_path / "query" / "state" / "0" / partition
        put(store / "SSTs" / "a.sst", 100, 10)
        put(store / "1.zip", 10, 11)
        put(store / "SSTs" / "b.sst", 50, 20)
        # Format 2 adds an id to the version.
        put(store / "2_0f3c.zip", 10, 21)
        put(store / ".2.zip.crc", 4, 21)
    assert snapshot_bytes(tmp_path) == [220, 120]


def test_a_join_has_stores_below_its_partition(tmp_path: Path) -> None:
    for name in ("left", "right"):
        put(tmp_path / "state" / "0" / "0" / name / "1.zip", 10, 5)
    assert snapshot_bytes(tmp_path) == [20]


def test_a_location_without_snapshots_has_none(tmp_path: Path) -> None:
    put(tmp_path / "state" / "0" / "0" / "1.changelog", 10, 5)
    assert snapshot_bytes(tmp_path) == []
