"""`penstock drain` on a folder and a real server: what it copies and what it refuses."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from penstock.checkpoint.location import Location, path_of
from penstock.cli.main import main
from penstock.client import Client
from penstock.errors import BadCall, Damaged, Fenced
from penstock.model.marker import encode_commit
from penstock.model.requests import FileBody, MarkerBody, SnapshotBody, SnapshotFileBody
from support.servers.processes import ServerProcess

_numbers = count()
Drain = Callable[..., tuple[int, str, str]]


class Query:
    """A query at instance 1, its batches and its location."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.id = f"drained-{next(_numbers)}"
        self.instance = int(client.take_over(self.id, "r1").instance)
        folder.mkdir()
        (folder / "metadata").write_text(json.dumps({"id": self.id}))

    def append(self, batch: int, files: dict[str, bytes]) -> list[int]:
        return [int(n) for n in self.client.append_files(self.id, self.instance, batch, files)]

    def mark(
        self,
        batch: int,
        files: dict[str, bytes],
        commit: bytes | None = b"v1\n{}",
        snapshots: list[SnapshotBody] | None = None,
        offsets: bytes | None = None,
    ) -> None:
        lsns = self.append(batch, files)
        marker = MarkerBody(
            1,
            batch,
            [],
            commit=None if commit is None else encode_commit(commit),
            files=[FileBody(path, n) for path, n in zip(files, lsns, strict=True)],
            snapshots=snapshots,
            offsets=None if offsets is None else encode_commit(offsets),
        )
        self.client.mark(self.id, marker)

    def batch(self, batch: int) -> dict[str, bytes]:
        """State first, so that the order of the location is not the order of the marker."""
        return {
            f"state/0/0/{batch + 1}.changelog": f"state {batch}".encode(),
            f"state/0/1/{batch + 1}.changelog": b"",
            f"offsets/{batch}": f"offsets {batch}".encode(),
        }

    def snapshot(self, batch: int, content: dict[str, bytes], crc32: int = 0) -> SnapshotBody:
        """A snapshot of `state/0/0` in the log, its checksums wrong by `crc32`."""
        files = [
            SnapshotFileBody(
                path, self.append(batch, {path: data}), len(data), zlib.crc32(data) ^ crc32
            )
            for path, data in content.items()
        ]
        return SnapshotBody("state/0/0", batch, files)

    def content(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}


@pytest.fixture
def query(client: Client, tmp_path: Path) -> Query:
    return Query(client, tmp_path / "checkpoint")


@pytest.fixture
def drain(
    shared_server: ServerProcess,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Drain:
    monkeypatch.setenv("PENSTOCK_TOKEN", shared_server.token)

    def run(folder: Path | str, *options: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["drain", str(folder), *options, "--url", shared_server.url])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def test_offsets_that_a_marker_carries_are_written_first(query: Query, drain: Drain) -> None:
    for batch in range(2):
        files = query.batch(batch)
        query.mark(batch, files, offsets=files.pop(f"offsets/{batch}"))
    code, out, err = drain(query.folder)
    assert (code, err) == (0, "")
    assert "batch 1: wrote offsets/1, state/0/0/2.changelog" in out
    content = query.content()
    assert (content["offsets/0"], content["offsets/1"]) == (b"offsets 0", b"offsets 1")
    assert content["commits/1"] == b"v1\n{}"


def test_a_location_is_brought_up_to_the_last_marker(query: Query, drain: Drain) -> None:
    for batch in range(3):
        query.mark(batch, query.batch(batch))
    query.append(3, {"offsets/3": b"first try"})
    query.append(3, {"offsets/3": b"offsets 3", "state/0/0/4.changelog": b"not marked"})
    code, out, err = drain(query.folder)
    assert (code, err) == (0, "")
    expected = {"metadata": json.dumps({"id": query.id}).encode(), "offsets/3": b"offsets 3"}
    for batch in range(3):
        expected |= {**query.batch(batch), f"commits/{batch}": b"v1\n{}"}
    assert query.content() == expected
    assert "taken over as instance 2" in out
    assert (
        "batch 1: wrote offsets/1, state/0/0/2.changelog, state/0/1/2.changelog, commits/1" in out
    )
    assert "has every batch up to 2" in out
    assert "batch 3 was begun: wrote offsets/3" in out


SNAPSHOT = {"state/0/0/2_ab.zip": b"names the table", "state/0/0/SSTs/1-ab.sst": b"a table"}


def test_state_that_the_location_has_lost_comes_from_the_log(query: Query, drain: Drain) -> None:
    query.mark(0, query.batch(0), snapshots=[])
    query.mark(1, query.batch(1), snapshots=[])
    query.mark(2, query.batch(2), snapshots=[query.snapshot(1, SNAPSHOT)])
    assert drain(query.folder)[0] == 0
    whole = query.content()
    assert whole.items() >= SNAPSHOT.items()
    needed = {"state/0/0/3.changelog", "state/0/1/1.changelog", *SNAPSHOT}
    for path in needed:
        (query.folder / path).unlink()
    (query.folder / "state/0/0/2_ab.zip.crc").write_bytes(b"of other bytes")
    code, out, err = drain(query.folder)
    assert (code, err) == (0, "")
    assert "the state lacked 4 files" in out
    assert query.content() == whole
    assert "the state lacked" not in drain(query.folder)[1]


def test_a_snapshot_whose_parts_come_to_something_else_is_not_written(
    query: Query, drain: Drain
) -> None:
    query.mark(0, query.batch(0), snapshots=[])
    query.mark(1, query.batch(1), snapshots=[query.snapshot(1, SNAPSHOT, crc32=1)])
    code, _, err = drain(query.folder)
    assert code != 0
    assert "state/0/0/SSTs/1-ab.sst" in err
    assert "is damaged in the log" in err
    assert not (query.folder / "state/0/0/SSTs").exists()


def test_a_run_that_is_still_alive_is_fenced(query: Query, drain: Drain) -> None:
    query.mark(0, query.batch(0))
    assert drain(query.folder)[0] == 0
    with pytest.raises(Fenced):
        query.append(1, {"offsets/1": b""})


def test_draining_again_and_from_where_the_copy_stood_changes_nothing_else(
    query: Query, drain: Drain
) -> None:
    for batch in range(105):
        query.mark(batch, query.batch(batch) if batch > 102 else {})
    for batch in range(103):
        for name in ("offsets", "commits"):
            (query.folder / name).mkdir(exist_ok=True)
            (query.folder / name / str(batch)).write_bytes(b"older")
    (query.folder / "offsets" / "103").write_bytes(b"offsets 103")
    _, out, _ = drain(f"file://{query.folder}")
    assert "batch 102" not in out
    assert (
        "batch 103: wrote state/0/0/104.changelog, state/0/1/104.changelog, commits/103; 1" in out
    )
    assert (query.folder / "commits/102").read_bytes() == b"older"
    before = query.content()
    code, out, _ = drain(query.folder)
    assert (code, query.content()) == (0, before)
    assert "copied 0 bytes" in out


def test_a_long_log_is_copied_page_by_page(query: Query, drain: Drain) -> None:
    for batch in range(101):
        query.mark(batch, {f"offsets/{batch}": b"o"})
    assert drain(query.folder)[0] == 0
    assert len(list((query.folder / "commits").iterdir())) == 101


def test_offsets_with_other_bytes_are_an_error_that_names_both(query: Query, drain: Drain) -> None:
    query.mark(0, query.batch(0))
    (query.folder / "offsets").mkdir()
    (query.folder / "offsets/0").write_bytes(b"others")
    code, _, err = drain(query.folder)
    assert code == 1
    assert f"{query.folder}/offsets/0 is there with 6 bytes and differs from entry " in err
    assert not (query.folder / "commits").exists()
    assert (query.folder / "offsets/0").read_bytes() == b"others"


def test_commits_with_other_bytes_are_never_replaced(tmp_path: Path) -> None:
    location = Location(tmp_path)
    location.put("commits/0", b"first", "entry 1")
    with pytest.raises(Damaged, match="commits/0 is there with 5 bytes and differs from entry 2"):
        location.put("commits/0", b"other", "entry 2")
    assert (tmp_path / "commits/0").read_bytes() == b"first"


def test_state_that_an_attempt_left_uncommitted_is_replaced(query: Query, drain: Drain) -> None:
    query.mark(0, query.batch(0))
    store = query.folder / "state/0/0"
    store.mkdir(parents=True)
    (store / "1.changelog").write_bytes(b"of an attempt that was killed")
    (store / ".1.changelog.crc").write_bytes(b"its checksum")
    code, out, err = drain(query.folder)
    assert (code, err) == (0, "")
    assert "wrote offsets/0, state/0/0/1.changelog" in out
    assert [(each.name, each.read_bytes()) for each in store.iterdir()] == [
        ("1.changelog", b"state 0")
    ]


def test_a_marker_ahead_of_both_is_refused_with_both_named(query: Query, drain: Drain) -> None:
    query.mark(5, query.batch(5))
    code, _, err = drain(query.folder)
    assert code == 1
    assert "the log has marked batch 5" in err
    assert f"{query.folder} has no committed batch" in err
    assert not (query.folder / "commits").exists()


def test_offsets_that_are_in_neither_are_refused(query: Query, drain: Drain) -> None:
    query.mark(0, {"state/0/0/1.changelog": b"x"})
    code, _, err = drain(query.folder)
    assert code == 1
    assert "offsets/0 is in neither" in err
    assert not (query.folder / "commits").exists()


def test_a_batch_without_a_commit_file_is_refused(query: Query, drain: Drain) -> None:
    query.mark(0, query.batch(0), commit=None)
    code, _, err = drain(query.folder)
    assert code == 1
    assert "the marker carries no commit file" in err


def test_a_location_ahead_of_the_log_is_left_alone(query: Query, drain: Drain) -> None:
    query.mark(0, query.batch(0))
    query.append(1, {"offsets/1": b"old"})
    (query.folder / "commits").mkdir()
    for batch in range(3):
        (query.folder / "commits" / str(batch)).write_bytes(b"")
    before = query.content()
    code, out, _ = drain(query.folder)
    assert (code, query.content()) == (0, before)
    assert "is ahead of the log: it has batch 2, marked is batch 0" in out


def test_the_query_must_be_known_to_the_location_and_to_the_log(
    query: Query, drain: Drain, tmp_path: Path
) -> None:
    query.mark(0, query.batch(0))
    empty = tmp_path / "empty"
    code, _, err = drain(empty)
    assert (code, "has no metadata file" in err) == (1, True)
    code, _, err = drain(empty, "--query", "nobody")
    assert (code, "has no query nobody; give the server it ran with" in err) == (1, True)
    assert not empty.exists()
    code, _, err = drain(query.folder, "--query", "other")
    assert (code, f"belongs to the query {query.id}, not to other" in err) == (1, True)
    assert drain(empty, "--query", query.id)[0] == 0
    assert Location(empty).query_id() == query.id
    assert (empty / "commits/0").exists()


def test_only_places_on_this_machine_are_taken() -> None:
    assert path_of("file:///a/b%20c") == Path("/a/b c")
    assert path_of("file:/a/b") == Path("/a/b")
    assert path_of("a/b") == Path("a/b")
    for far in ("hdfs://host/x", "s3a://bucket/x", "file://host/x"):
        with pytest.raises(BadCall, match="is not on this machine"):
            path_of(far)


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location(tmp_path)
    stale = tmp_path / "offsets" / ".1.crc"
    stale.parent.mkdir()
    stale.write_bytes(b"checksum of something else")

    def fails(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fails)
        with pytest.raises(BadCall, match="offsets/1 cannot be written: the disk is full"):
            location.put("offsets/1", b"x", "entry 1")
    assert [each.name for each in (tmp_path / "offsets").iterdir()] == [".1.crc"]
    assert location.put("offsets/1", b"x", "entry 1")
    assert not location.put("offsets/1", b"x", "entry 1")
    with pytest.raises(Damaged):
        location.put("offsets/1", b"y", "entry 2")
    assert [each.name for each in (tmp_path / "offsets").iterdir()] == ["1"]
