"""Take-overs, pending entries, markers and admission over HTTP."""

from __future__ import annotations

import threading
import time
from typing import Any

import pyarrow as pa
import pytest

from support.servers.http_server import ARROW, Answer, Served, ipc, table


def batch(*keys: int) -> pa.RecordBatch:
    return table(*keys).to_batches()[0]


class Query:
    """A query of the test's own, named like its stream."""

    def __init__(self, served: Served, name: str) -> None:
        self.served, self.name, self.path = served, name, f"/queries/{name}"

    def take(self, run: str) -> Answer:
        return self.served.ask("POST", f"{self.path}/instances", {"run": run, "name": None})

    def append(
        self, *batches: pa.RecordBatch, substreams: str, files: bytes = b"", **more: int | str
    ) -> Answer:
        given = {"instance": 1, "batch": 0, "partition": 0, "attempt": 0, **more}
        parameters = "&".join(f"{key}={value}" for key, value in given.items())
        stamped = f"query={self.name}&{parameters}&substreams={substreams}"
        body = ipc(list(batches)) + files
        path = f"/streams/{self.name}/entries?{stamped}"
        return self.served.ask("POST", path, body, Content_Type=ARROW)

    def mark(self, entries: list[int], **more: Any) -> Answer:
        write = {"stream": self.name, "partition": 0, "attempt": 0, "entries": entries}
        body = {"instance": 1, "batch": 0, "writes": [write], "commit": "e30=", **more}
        return self.served.ask("POST", f"{self.path}/markers", body)


@pytest.fixture
def query(served: Served, name: str) -> Query:
    served.make(name, substreams=2)
    query = Query(served, name)
    taken = query.take("r1").json()
    assert (taken["instance"], taken["marker"]) == (1, None)
    return query


def test_entries_are_invisible_until_a_marker_names_them(query: Query, served: Served) -> None:
    entries = query.append(batch(1), batch(2), batch(3), substreams="0,1,0").json()["entries"]
    assert served.values(query.name) == []
    lsn = query.mark([entries[0], entries[2]]).json()["lsn"]
    assert served.values(query.name) == [1, 3]
    stream = served.ask("GET", f"/streams/{query.name}").json()
    assert (stream["latest"], stream["rows"]) == (lsn, 2)


def test_state_comes_with_the_rows_of_its_task(query: Query, served: Served) -> None:
    along = {"paths": "state/0/0/1.changelog,offsets/0", "sizes": "5,2"}
    answer = query.append(batch(1, 2), substreams="1", files=b"statev1", **along).json()
    lsns = answer["files"]
    assert len(answer["entries"]) == 1
    read = [served.ask("GET", f"{query.path}/files/{lsn}").body for lsn in lsns]
    assert read == [b"state", b"v1"]
    files = [{"path": "state/0/0/1.changelog", "entry": lsns[0]}]
    assert query.mark(answer["entries"], files=files).status == 200
    assert served.values(query.name) == [1, 2]


@pytest.mark.parametrize(
    ("along", "sentence"),
    [
        ({"paths": "a,b", "sizes": "1"}, "2 paths and 1 sizes"),
        ({"paths": "a"}, "1 paths and 0 sizes"),
        ({"paths": "a", "sizes": "999999"}, "send the rows, then the files"),
        ({"paths": "../a", "sizes": "1"}, "../a"),
    ],
)
def test_files_that_are_not_as_named_are_refused_with_their_rows(
    query: Query, along: dict[str, str], sentence: str
) -> None:
    refused = query.append(batch(1), substreams="0", files=b"x", **along)
    assert refused.status == 400, refused.body
    assert sentence in refused.message


def test_the_same_marker_twice_gets_the_same_answer_and_another_is_refused(query: Query) -> None:
    entries = query.append(batch(1), batch(2), substreams="0,0").json()["entries"]
    first = query.mark(entries)
    assert query.mark(entries).json() == first.json()
    other = query.mark(entries[:1])
    assert (other.status, other.code) == (409, "already_marked")


def test_a_taken_over_instance_is_fenced_everywhere(query: Query, served: Served) -> None:
    query.mark([], batch=3)
    taken = query.take("r2").json()
    assert (taken["instance"], taken["marker"]["batch"]) == (2, 3)
    assert taken["marker"]["commit"] == "e30="
    assert query.take("r2").json()["instance"] == 2
    admission = {"query": query.name, "instance": 1, "stream": query.name, "after": 0}
    for refused in (
        query.append(batch(1), substreams="0"),
        query.mark([], batch=4),
        served.ask("POST", "/admission", admission),
        query.take("r1"),
    ):
        assert (refused.status, refused.code) == (409, "fenced")
        assert refused.json()["error"]["act"] == "stop"


def test_a_marker_that_names_what_is_not_its_own_is_refused(query: Query, served: Served) -> None:
    entries = query.append(batch(1), substreams="0", attempt=1).json()["entries"]
    refused = query.mark(entries)
    assert (refused.status, refused.code) == (409, "unknown_entries")
    own = served.append(table(5), query.name).json()["entries"]
    assert query.mark(own).code == "unknown_entries"
    assert query.mark([10**12]).code == "unknown_entries"


def test_queries_are_listed_with_their_last_marker(query: Query, served: Served) -> None:
    lsn = query.mark([], batch=8).json()["lsn"]
    description = served.ask("GET", f"/queries/{query.name}").json()
    assert description == {
        "query": query.name,
        "name": None,
        "instance": 1,
        "run": "r1",
        "marker": {"lsn": lsn, "batch": 8, "instance": 1, "commit": "e30="},
        "copied": None,
        "trimmed": 0,
        "emptying": None,
    }
    assert description in served.ask("GET", "/queries").json()["queries"]
    assert served.ask("GET", "/queries/nobody").code == "unknown_query"


def test_entries_must_have_exactly_the_streams_shape(query: Query) -> None:
    rows = pa.RecordBatch.from_pydict({"v": ["x"], "k": [1]})
    assert query.append(rows, substreams="0").code == "rows_do_not_fit"
    assert query.append(batch(1), substreams="0,1").code == "bad_request"
    assert query.append(batch(1), substreams="2").code == "substream_out_of_range"
    assert query.append(batch(1), substreams="x").code == "bad_request"


def test_entries_with_a_parameter_that_the_route_does_not_know_are_refused(query: Query) -> None:
    refused = query.append(batch(1), substreams="0&visible=true")
    assert (refused.status, refused.code) == (400, "bad_request")
    assert "visible" in refused.json()["error"]["message"]


def admit(served: Served, name: str, **body: Any) -> dict[str, int]:
    answer = served.ask("POST", "/admission", {"stream": name, "instance": None, **body})
    assert answer.status == 200, answer.body
    return dict(answer.json())


def test_admission_cuts_at_commits_and_gives_at_least_one(served: Served, name: str) -> None:
    served.make(name)
    ends = [served.append(table(*range(10)), name).json()["position"] for _ in range(5)]
    last = ends[-1]
    assert admit(served, name, after=0) == {"end": last, "latest": last, "substreams": 1}
    assert admit(served, name, after=0, rows_max=25)["end"] == ends[1]
    assert admit(served, name, after=0, rows_max=3)["end"] == ends[0]
    assert admit(served, name, after=ends[1], rows_max=20)["end"] == ends[3]
    assert admit(served, name, after=0, bytes_max=1)["end"] == ends[0]
    assert admit(served, name, after=0, until=ends[2])["end"] == ends[2]
    assert admit(served, name, after=last) == {"end": last, "latest": last, "substreams": 1}


def test_admission_is_held_for_this_stream_or_another(patient: Served, name: str) -> None:
    other = f"{name}_other"
    patient.make(name)
    patient.make(other)
    began = time.monotonic()
    threading.Timer(0.3, lambda: patient.append(table(1), other)).start()
    answer = admit(patient, name, after=0, others=[{"stream": other, "after": 0}], wait_ms=60_000)
    assert answer == {"end": 0, "latest": 0, "substreams": 1}
    assert 0.3 <= time.monotonic() - began < 50


def test_admission_is_not_held_for_longer_than_the_server_does(served: Served, name: str) -> None:
    served.make(name)
    began = time.monotonic()
    assert admit(served, name, after=0, wait_ms=60_000)["end"] == 0
    assert 0.9 < time.monotonic() - began < 50


def test_entries_may_be_answered_before_their_sync_and_say_so(query: Query, served: Served) -> None:
    along = {"paths": "state/0/0/1.changelog", "sizes": "5", "early": "1"}
    answer = query.append(batch(1, 2), substreams="1", files=b"state", **along).json()
    (entry,), (file,) = answer["entries"], answer["files"]
    files = [{"path": "state/0/0/1.changelog", "entry": file}]
    start = answer.get("start")  # none in front of JetStream, whose places are given by its stream
    other = query.mark([entry], files=files, starts=[{"start": 1, "last": file}])
    assert (other.status, other.code) == (409, "other_start")
    assert "Restart the query" in other.message
    given = [] if start is None else [{"start": start, "last": file}]
    assert query.mark([entry], files=files, starts=given).status == 200
    assert sorted(served.values(query.name)) == [1, 2]


def test_offsets_are_synced_when_they_are_answered(query: Query) -> None:
    along = {"paths": "offsets/0", "sizes": "2", "early": "1"}
    answer = query.append(batch(1), substreams="0", files=b"v1", **along)
    assert answer.status == 200
    assert "start" not in answer.json()


def test_early_is_yes_or_no(query: Query) -> None:
    answer = query.append(batch(1), substreams="0", early="soon")
    assert (answer.status, answer.code) == (400, "bad_request")
    assert "early is 'soon', and must be 0 or 1" in answer.message
    assert "start" not in query.append(batch(1), substreams="0", early="0").json()
