"""A disk that is full: nothing is half appended, the server stays up and goes on when it can."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from support.servers.http_server import Answer, Served

BIG = pa.table({"k": range(2_000), "v": ["x" * 1_000] * 2_000})


def rows(key: int) -> pa.Table:
    return BIG.set_column(0, "k", pa.array([key] * BIG.num_rows, pa.int64()))


def is_full(answer: Answer, data: Path) -> None:
    assert (answer.status, answer.code) == (507, "storage_full"), answer.body
    assert answer.json()["error"]["act"] == "retry"
    assert str(data) in answer.message
    assert "bytes free" in answer.message


def only_whole(served: Served, keys: list[int]) -> None:
    assert served.values() == [key for key in keys for _ in range(BIG.num_rows)]


def test_a_file_that_may_not_grow_refuses_and_recovers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data) as served:
        served.make()
        assert served.append(rows(1)).status == 200
        served.limit_files((data / "log" / "data.mdb").stat().st_size + (1 << 20))
        for _ in range(3):
            is_full(served.append(rows(2)), data)
        only_whole(served, [1])
        served.limit_files(None)
        assert served.append(rows(3)).json()["position"] == 2
        only_whole(served, [1, 3])
    with Served(data) as served:
        only_whole(served, [1, 3])


def test_the_bound_of_the_map_refuses_and_can_be_raised(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data, "--set", f"map_bytes={8 << 20}") as served:
        served.make()
        answers = [served.append(rows(key)) for key in range(5)]
        kept = [key for key, answer in enumerate(answers) if answer.status == 200]
        assert 0 < len(kept) < 5
        is_full(answers[-1], data)
        assert "raise it" in answers[-1].message
        only_whole(served, kept)
    with Served(data) as served:
        assert served.append(rows(9)).status == 200
        only_whole(served, [*kept, 9])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Twelve mebibytes of a file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"skipped, because a tmpfs cannot be mounted here: {made.stderr.decode()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(ballast: Path) -> None:
    """Leave no block of the disk free."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert shutil.disk_usage(ballast.parent).free == 0


def test_a_full_disk_refuses_and_recovers_when_there_is_room(small_disk: Path) -> None:
    data = small_disk / "data"
    with Served(data) as served:
        served.make()
        (small_disk / "ballast").write_bytes(b"x" * (3 << 20))
        answers = [served.append(rows(key)) for key in range(4)]
        kept = [key for key, answer in enumerate(answers) if answer.status == 200]
        assert 0 < len(kept) < 4
        is_full(answers[-1], data)
        only_whole(served, kept)
        (small_disk / "ballast").unlink()
        assert served.append(rows(8)).status == 200
        only_whole(served, [*kept, 8])
    with Served(data) as served:
        only_whole(served, [*kept, 8])


def test_on_a_full_disk_a_stream_is_trimmed_and_goes_on_in_what_that_freed(
    small_disk: Path,
) -> None:
    data = small_disk / "data"
    with Served(data, "--set", f"reserve_bytes={512 << 10}") as served:
        served.make()
        kept = [served.append(rows(key)).json()["position"] for key in range(3)]
        fill(small_disk / "ballast")
        is_full(served.append(rows(3)), data)
        trimmed = served.ask("POST", "/streams/s/trim", {"until": kept[-1]})
        assert trimmed.status == 200, trimmed.body
        assert served.append(rows(4)).status == 200
        assert served.values_after("s", "k", kept[-1]) == [4] * BIG.num_rows
