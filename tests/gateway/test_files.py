"""Checkpoint files of queries over HTTP: in, named by a marker, and out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support.servers.http_server import Answer, Served, refusal, table

STATE_FILE = "state/0/1/2_abc.changelog"
DAMAGED = b"to-be-damaged" * 500


class Query:
    """A query of the test's own."""

    def __init__(self, served: Served, name: str) -> None:
        self.served, self.path = served, f"/queries/{name}"
        assert self.take("r1").status == 200

    def take(self, run: str) -> Answer:
        return self.served.ask("POST", f"{self.path}/instances", {"run": run})

    def put(
        self, files: dict[str, bytes], *, instance: int = 1, batch: int = 0, extra: str = ""
    ) -> Answer:
        paths = ",".join(quote(path, safe="") for path in files)
        sizes = ",".join(str(len(data)) for data in files.values())
        stamp = f"instance={instance}&batch={batch}&paths={paths}&sizes={sizes}{extra}"
        return self.served.ask("POST", f"{self.path}/files?{stamp}", b"".join(files.values()))

    def post(self, query: str, body: bytes = b"") -> Answer:
        return self.served.ask("POST", f"{self.path}/files?{query}", body)

    def get(self, lsn: int | str) -> Answer:
        return self.served.ask("GET", f"{self.path}/files/{lsn}")

    def mark(self, files: dict[str, int], /, **more: Any) -> Answer:
        named = [{"path": path, "entry": entry} for path, entry in files.items()]
        body = {"instance": 1, "batch": 0, "writes": [], "commit": "e30=", "files": named, **more}
        return self.served.ask("POST", f"{self.path}/markers", body)

    def checkpoint(self, after: int | None = None) -> dict[str, Any]:
        asked = "" if after is None else f"?after_batch={after}"
        answer = self.served.ask("GET", f"{self.path}/checkpoint{asked}")
        assert answer.status == 200, answer.body
        return dict(answer.json())


@pytest.fixture
def query(served: Served, name: str) -> Query:
    return Query(served, name)


def test_one_file_is_the_whole_body(query: Query) -> None:
    (lsn,) = query.post("instance=1&batch=12&path=offsets%2F12", b"v1\n{}").json()["entries"]
    answer = query.get(lsn)
    assert (answer.status, answer.body) == (200, b"v1\n{}")
    assert answer.headers["Content-Type"] == "application/octet-stream"


def test_several_files_are_one_request(query: Query) -> None:
    files = {"offsets/0": b"one", STATE_FILE: bytes(range(256)), f"{STATE_FILE}.crc": b""}
    lsns = query.put(files).json()["entries"]
    assert lsns == list(range(lsns[0], lsns[0] + 3))
    assert [query.get(lsn).body for lsn in lsns] == list(files.values())


def test_a_marker_may_carry_the_offsets_of_its_batch(query: Query) -> None:
    (state,) = query.put({STATE_FILE: b"b"}).json()["entries"]
    query.mark({STATE_FILE: state}, offsets="djEK").json()
    (marker,) = query.checkpoint()["markers"]
    assert marker["offsets"] == "djEK"
    assert [file["path"] for file in marker["files"]] == [STATE_FILE]
    (recorded,) = query.put({"offsets/1": b"c"}, batch=1).json()["entries"]
    twice = query.mark({"offsets/1": recorded}, batch=1, offsets="djEK")
    assert (twice.status, twice.code) == (409, "unknown_entries")
    assert "is named twice" in twice.message
    garbled = query.mark({}, batch=1, offsets="%")
    assert (garbled.status, garbled.code) == (400, "bad_request")
    assert "'offsets' is not base64" in garbled.message


def test_as_many_files_as_a_wide_batch_has_fit_into_a_request(query: Query) -> None:
    files = {f"state/0/{n}/left-keyWithIndexToValue/1_{n:036}.changelog": b"x" for n in range(999)}
    lsns = query.put({**files, "offsets/0": b"y"}).json()["entries"]
    assert len(lsns) == 1_000
    assert query.get(lsns[-1]).body == b"y"
    refused = query.put({f"state/{n}": b"" for n in range(1_001)})
    assert (refused.status, refused.code) == (400, "bad_request")
    assert "1001 files, and may have 1000" in refused.message


def test_a_checkpoint_is_what_the_markers_name_and_the_recorded_offsets(query: Query) -> None:
    assert query.checkpoint() == {"markers": [], "more": False, "offsets": None}
    first, second = query.put({"offsets/0": b"a", STATE_FILE: b"b"}).json()["entries"]
    assert query.checkpoint()["offsets"] == {"batch": 0, "entry": first, "instance": 1}
    lsn = query.mark({"offsets/0": first, STATE_FILE: second}).json()["lsn"]
    marker = {
        "lsn": lsn,
        "batch": 0,
        "instance": 1,
        "commit": "e30=",
        "files": [{"path": "offsets/0", "entry": first}, {"path": STATE_FILE, "entry": second}],
        "offsets": None,
    }
    assert query.checkpoint() == {"markers": [marker], "more": False, "offsets": None}
    query.take("r2")
    (again,) = query.put({"offsets/1": b"c"}, instance=2, batch=1).json()["entries"]
    recorded = {"batch": 1, "entry": again, "instance": 2}
    assert query.checkpoint(0) == {"markers": [], "more": False, "offsets": recorded}


def test_a_long_checkpoint_comes_in_pages(query: Query) -> None:
    for batch in range(103):
        assert query.mark({}, batch=batch, commit=None).status == 200
    first = query.checkpoint()
    assert [marker["batch"] for marker in first["markers"]] == list(range(100))
    assert first["more"]
    rest = query.checkpoint(99)
    assert [marker["batch"] for marker in rest["markers"]] == [100, 101, 102]
    assert not rest["more"]


def test_a_taken_over_instance_cannot_append_files(query: Query) -> None:
    query.take("r2")
    refused = query.put({"offsets/0": b""})
    assert (refused.status, refused.code) == (409, "fenced")
    assert query.checkpoint()["offsets"] is None


def test_a_marker_that_names_files_that_are_not_its_own_is_refused(query: Query) -> None:
    (lsn,) = query.put({STATE_FILE: b""}, batch=1).json()["entries"]
    for named in ({STATE_FILE: lsn}, {STATE_FILE: 10**12}, {"offsets/0": lsn}):
        refused = query.mark(named)
        assert (refused.status, refused.code) == (409, "unknown_entries")
    twice = [{"path": STATE_FILE, "entry": lsn}] * 2
    assert query.mark({}, batch=1, files=twice).code == "unknown_entries"
    assert query.mark({"../x": lsn}, batch=1).code == "bad_request"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "", "a\\b", "a\x00b", "x" * 501]
)
def test_paths_that_lead_elsewhere_are_refused(query: Query, path: str) -> None:
    for name in ("path", "paths"):
        refused = query.post(f"instance=1&batch=0&{name}={quote(path, safe='')}&sizes=0")
        assert (refused.status, refused.code) == (400, "bad_request"), path
        assert "is not a path of a checkpoint file" in refused.message


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ("batch=0&path=a", "instance is missing"),
        ("instance=1&path=a", "batch is missing"),
        ("instance=1&batch=0", "give path=… for one file or paths="),
        ("instance=1&batch=0&path=a&paths=a", "one of them"),
        ("instance=1&batch=0&path=a%2Cb", "is not a path"),
        ("instance=1&batch=0&paths=a,b", "2 paths and 0 sizes"),
        ("instance=1&batch=0&paths=a,b&sizes=3", "2 paths and 1 sizes"),
        ("instance=1&batch=0&paths=a,b&sizes=1,1", "add up to 2 bytes and the body has 3"),
        ("instance=1&batch=0&paths=a&sizes=4", "add up to 4 bytes and the body has 3"),
        ("instance=1&batch=0&paths=a,b&sizes=3,x", "must be numbers of bytes"),
        (f"instance=1&batch=0&paths=a&sizes={'9' * 5000}", "must be numbers of bytes"),
        (f"instance=1&batch={'9' * 5000}&path=a", "must be a number"),
        ("instance=1&batch=0&path=offsets%2F1", "append each with its own batch"),
    ],
)
def test_a_malformed_request_is_refused(query: Query, asked: str, fact: str) -> None:
    refused = query.post(asked, b"abc")
    assert (refused.status, refused.code) == (400, "bad_request")
    assert fact in refused.message


def test_only_files_of_the_query_are_given_out(query: Query, served: Served, name: str) -> None:
    (own,) = query.put({"offsets/0": b""}).json()["entries"]
    stranger = Query(served, f"{name}_other")
    served.make(name)
    (row,) = served.append(table(1), name).json()["entries"]
    for asked, lsn in ((stranger, own), (query, row), (query, 10**12)):
        answer = asked.get(lsn)
        assert (answer.status, answer.code) == (404, "unknown_entries")
    assert query.get("x").code == "bad_request"
    assert query.get("9" * 5000).code == "bad_request"
    unknown = served.ask("GET", "/queries/nobody/checkpoint")
    assert (unknown.status, unknown.code) == (404, "unknown_query")
    assert served.ask("POST", "/queries/nobody/files?instance=1&batch=0&path=a").code == (
        "unknown_query"
    )


def test_files_are_never_rows(query: Query, served: Served, name: str) -> None:
    served.make(name)
    entries = query.put({"offsets/0": b"", STATE_FILE: b"x"}).json()["entries"]
    query.mark({"offsets/0": entries[0], STATE_FILE: entries[1]})
    assert served.values(name) == []
    assert served.ask("GET", f"/streams/{name}").json()["rows"] == 0
    write = {"stream": name, "partition": 0, "attempt": 0, "entries": entries}
    assert query.mark({}, batch=1, writes=[write]).code == "unknown_entries"


def test_a_file_too_large_for_an_entry_is_refused(tmp_path: Path) -> None:
    with Served(tmp_path / "data", "--set", "entry_bytes_max=1024") as served:
        query = Query(served, "q")
        refused = query.put({"offsets/0": b"x", STATE_FILE: b"x" * 1025})
        assert (refused.status, refused.code) == (413, "entry_too_large")
        assert STATE_FILE in refused.message
        assert query.checkpoint()["offsets"] is None, "all or none"
        assert query.put({STATE_FILE: b"x" * 1024}).status == 200


def flip(data: Path, content: bytes) -> None:
    file = data / "log" / "data.mdb"
    stored = bytearray(file.read_bytes())
    assert stored.count(content) == 1
    stored[stored.find(content) + len(content) // 2] ^= 0xFF
    file.write_bytes(stored)


def test_files_outlive_the_server_and_damage_is_not_given_out(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data) as served:
        lsns = Query(served, "q").put({"offsets/0": b"kept", STATE_FILE: DAMAGED}).json()["entries"]
        served.kill()
    flip(data, DAMAGED)
    with Served(data, "--set", "verify_entries_max=0") as served:
        assert served.ask("GET", f"/queries/q/files/{lsns[0]}").body == b"kept"
        answer = served.ask("GET", f"/queries/q/files/{lsns[1]}")
        assert (answer.status, answer.code) == (500, "damaged")


def snapshot_of(entries: dict[str, list[int]], **more: Any) -> dict[str, Any]:
    files = [
        {"path": path, "entries": lsns, "file_bytes": 4 * len(lsns), "crc32": 7}
        for path, lsns in entries.items()
    ]
    return {"folder": "state/0/1", "batch": 0, "files": files, **more}


def test_a_snapshot_is_named_by_a_marker_and_found_with_what_follows_it(query: Query) -> None:
    table, own = "state/0/1/SSTs/1-ab.sst", "state/0/1/1_ab.zip"
    (first,) = query.put({table: b"one "}).json()["entries"]
    second, third = query.put({table: b"two ", own: b"zip "}).json()["entries"]
    state = query.served.ask("GET", f"{query.path}/state").json()
    assert state == {"stores": [], "more": False}
    named = snapshot_of({table: [first, second], own: [third]})
    (change,) = query.put({STATE_FILE: b"change"}, batch=1).json()["entries"]
    assert query.mark({}, snapshots=[]).status == 200
    assert query.mark({STATE_FILE: change}, batch=1, snapshots=[named]).status == 200
    (store,) = query.served.ask("GET", f"{query.path}/state").json()["stores"]
    assert store == {
        "folder": "state/0/1",
        "needs_from": 1,
        "snapshot": named["files"],
        "changes": [{"path": STATE_FILE, "entry": change, "batch": 1}],
    }
    after = query.served.ask("GET", f"{query.path}/state?after=state%2F0%2F1").json()
    assert after["stores"] == []


def test_a_snapshot_that_is_not_what_it_says_is_refused(query: Query) -> None:
    own = "state/0/1/1_ab.zip"
    (lsn,) = query.put({own: b"zip "}).json()["entries"]
    good = snapshot_of({own: [lsn]})
    for wrong, code in (
        ({"folder": ""}, "bad_request"),
        ({"batch": -1}, "bad_request"),
        ({"batch": 1}, "unknown_entries"),
        ({"files": []}, "unknown_entries"),
        ({"files": [{**good["files"][0], "path": "../1_ab.zip"}]}, "bad_request"),
        ({"files": [{**good["files"][0], "file_bytes": 5}]}, "unknown_entries"),
        ({"files": [{**good["files"][0], "entries": [lsn + 99]}]}, "unknown_entries"),
    ):
        assert query.mark({}, snapshots=[{**good, **wrong}]).code == code, wrong
    assert query.mark({}, snapshots=[good]).status == 200
    assert query.served.ask("GET", "/queries/nobody/state").code == "unknown_query"


def test_a_cut_puts_the_recorded_offsets_back_and_fences_the_query(tmp_path: Path) -> None:
    """o0 marked, o1 (first try), o1 (second try) marked with a damaged file."""
    data = tmp_path / "data"
    with Served(data) as served:
        query = Query(served, "q")
        (lsn,) = query.put({"offsets/0": b"o0"}).json()["entries"]
        query.mark({"offsets/0": lsn})
        (first_try,) = query.put({"offsets/1": b"first"}, batch=1).json()["entries"]
        lsns = query.put({STATE_FILE: DAMAGED, "offsets/1": b"second"}, batch=1).json()["entries"]
        query.mark({STATE_FILE: lsns[0], "offsets/1": lsns[1]}, batch=1)
        assert query.checkpoint(0)["offsets"] is None
    flip(data, DAMAGED)
    assert f"damaged from entry {lsns[0]} on" in refusal(data)
    with Served(data, "--cut-damaged-tail") as served:
        checkpoint = served.ask("GET", "/queries/q/checkpoint").json()
        assert [marker["batch"] for marker in checkpoint["markers"]] == [0]
        assert checkpoint["offsets"] == {"batch": 1, "entry": first_try, "instance": 1}
        assert served.ask("GET", f"/queries/q/files/{first_try}").body == b"first"
        stale = served.ask("POST", "/queries/q/files?instance=1&batch=1&path=offsets%2F1", b"")
        assert stale.code == "fenced"
        assert json.loads(served.ask("GET", "/queries/q").body)["instance"] == 2


def test_a_cut_that_takes_only_a_file_fences_its_query_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data) as served:
        query = Query(served, "q")
        query.put({"offsets/0": b"o0"})
        query.put({STATE_FILE: DAMAGED})
    flip(data, DAMAGED)
    with Served(data, "--cut-damaged-tail") as served:
        assert served.ask("GET", "/queries/q").json()["instance"] == 2
        assert served.ask("GET", "/queries/q/checkpoint").json()["offsets"]["entry"] == 2
