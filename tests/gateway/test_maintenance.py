"""Consumers, trims, alterations and deletions over HTTP."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from penstock.cli.consumers import consumers
from support.servers.http_server import JSON_LINES, Served, ipc, table

ARROW_TYPE = {"Content_Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture
def stream(served: Served, name: str) -> str:
    served.make(name)
    return name


def position(served: Served, stream: str, *keys: int) -> int:
    return int(served.append(table(*keys), stream).json()["position"])


def test_a_consumer_registers_moves_and_holds_its_stream(served: Served, stream: str) -> None:
    ends = [position(served, stream, key) for key in range(3)]
    where = f"/consumers/{stream}/streams/{stream}"
    assert served.ask("PUT", where, {"start": "earliest"}).json() == {"position": 0}
    assert served.ask("PUT", where, {"start": "latest"}).json() == {"position": 0}, "it is known"
    refused = served.ask("POST", f"/streams/{stream}/trim", {"until": ends[1]})
    assert (refused.status, refused.code) == (409, "still_needed")
    moved = {"streams": {stream: {"position": ends[1], "expect": 0}}}
    answer = served.ask("POST", f"/consumers/{stream}/positions", moved)
    assert answer.json() == {"positions": {stream: ends[1]}}
    (consumer,) = [
        each
        for each in served.ask("GET", "/consumers").json()["consumers"]
        if each["stream"] == stream
    ]
    assert (consumer["reader"], consumer["position"], consumer["rows_behind"]) == (
        "group",
        ends[1],
        1,
    )
    assert not consumer["is_away"]
    trimmed = served.ask("POST", f"/streams/{stream}/trim", {"until": ends[1]}).json()
    assert (trimmed["until"], trimmed["entries"]) == (ends[1], 2)
    assert served.ask("DELETE", f"/consumers/{stream}").json() == {"forgotten": [stream]}
    assert served.ask("DELETE", f"/consumers/{stream}").code == "unknown_consumer"


def test_rows_that_are_gone_are_an_error_wherever_they_are_asked_for(
    served: Served, stream: str
) -> None:
    first, last = position(served, stream, 1), position(served, stream, 2)
    served.ask("POST", f"/streams/{stream}/trim", {"until": first})
    description = served.ask("GET", f"/streams/{stream}").json()
    assert (description["earliest"], description["latest"], description["rows"]) == (first, last, 1)
    at = served.ask("GET", f"/streams/{stream}/position?at=earliest").json()
    assert at == {"position": first}
    ask = {"stream": stream, "after": 0}
    other = {"stream": stream, "after": first, "others": [{"stream": stream, "after": 0}]}
    for answer in (
        served.ask("GET", f"/streams/{stream}/rows?after=0"),
        served.ask("GET", f"/streams/{stream}/rows?after=0&until={last}&cursor={last}:0"),
        served.ask("POST", "/admission", ask),
        served.ask("POST", "/admission", other),
        served.ask("PUT", f"/consumers/x/streams/{stream}", {"start": 0}),
    ):
        assert (answer.status, answer.code) == (410, "trimmed"), answer.body
        assert f"start from {first}" in answer.message
    rest = served.ask("GET", f"/streams/{stream}/rows")
    assert rest.table().column("k").to_pylist() == [2]


def test_a_query_holds_what_it_asked_to_read_before_its_first_marker(
    served: Served, stream: str
) -> None:
    end = position(served, stream, 1)
    served.ask("POST", f"/queries/{stream}/instances", {"run": "r"})
    ask = {"query": stream, "instance": 1, "stream": stream, "after": 0}
    assert served.ask("POST", "/admission", ask).json()["end"] == end
    refused = served.ask("POST", f"/streams/{stream}/trim", {"until": end})
    assert f"the query '{stream}' at position 0" in refused.message
    served.ask("DELETE", f"/queries/{stream}")
    assert served.ask("POST", f"/streams/{stream}/trim", {"until": end}).status == 200
    assert served.ask("POST", "/admission", ask).code == "unknown_query"


def test_a_column_is_added_and_everyone_goes_on(served: Served, stream: str) -> None:
    position(served, stream, 1)
    altered = served.ask("PATCH", f"/streams/{stream}", {"add": "note string, n array<int>"})
    assert altered.json()["ddl"] == "k bigint, v string, note string, n array<int>"
    assert altered.json()["version"] == 1
    position(served, stream, 2)  # a writer that does not know it
    new = pa.table({"k": [3], "v": ["x"], "note": ["hello"], "n": [[1, 2]]})
    assert served.append(new, stream).status == 200
    assert served.lines('{"k": 4, "note": "line"}\n', stream).status == 200
    back = served.ask("GET", f"/streams/{stream}/rows").table()
    assert back.column("k").to_pylist() == [1, 2, 3, 4]
    assert back.column("note").to_pylist() == [None, None, "hello", "line"]
    assert back.column("n").to_pylist() == [None, None, [1, 2], None]
    old = served.ask("GET", f"/streams/{stream}/rows?columns=2").table()
    assert old.column_names == ["k", "v"]
    assert old.column("k").to_pylist() == [1, 2, 3, 4]
    lines = served.ask("GET", f"/streams/{stream}/rows?columns=3", Accept=JSON_LINES).body
    assert lines.splitlines()[2] == b'{"k":3,"v":"x","note":"hello"}'
    assert served.make(stream).status == 200, "a writer that makes sure of its stream finds it"
    missing = pa.table({"k": [5], "note": ["v is not a column that was added"]})
    assert served.append(missing, stream).code == "rows_do_not_fit"
    assert served.ask("GET", f"/streams/{stream}/rows?columns=5").code == "bad_request"


def test_tasks_of_an_older_run_write_what_they_know(served: Served, stream: str) -> None:
    served.ask("POST", f"/queries/{stream}/instances", {"run": "r"})
    served.ask("PATCH", f"/streams/{stream}", {"add": "note string"})
    path = (
        f"/streams/{stream}/entries?query={stream}&instance=1&batch=0&partition=0&attempt=0"
        "&substreams=0"
    )
    entries = served.ask("POST", path, ipc(table(7)), **ARROW_TYPE).json()["entries"]
    write = {"stream": stream, "partition": 0, "attempt": 0, "entries": entries}
    served.ask("POST", f"/queries/{stream}/markers", {"instance": 1, "batch": 0, "writes": [write]})
    back = served.ask("GET", f"/streams/{stream}/rows").table()
    assert back.to_pylist() == [{"k": 7, "v": "x", "note": None}]


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        ({"ddl": "k bigint"}, "'v' would be dropped"),
        ({"ddl": "k int, v string"}, "would become int"),
        ({"substreams": 0}, "the body does not say what it should"),
        ({"add": "k string"}, "more than once"),
        ({"add": "a int", "ddl": "k bigint"}, "one of"),
    ],
)
def test_a_change_that_cannot_be_is_refused(
    served: Served, stream: str, body: dict[str, object], fact: str
) -> None:
    answer = served.ask("PATCH", f"/streams/{stream}", body)
    assert answer.status in (400, 409)
    assert fact in answer.message


def test_substreams_are_added_and_rows_of_a_key_follow(served: Served, name: str) -> None:
    served.make(name, substreams=1, key=["k"])
    before = position(served, name, *range(20))
    answer = served.ask("PATCH", f"/streams/{name}", {"substreams": 4}).json()
    assert answer["substreams"] == 4
    after = position(served, name, *range(20))
    counts = [
        served.ask("GET", f"/streams/{name}/rows?substream={k}&after={before}").table().num_rows
        for k in range(4)
    ]
    assert sum(counts) == 20
    assert min(counts) > 0
    first = served.ask("POST", "/admission", {"stream": name, "after": 0}).json()
    assert first == {"end": before, "latest": after, "substreams": 4}
    second = served.ask("POST", "/admission", {"stream": name, "after": before}).json()
    assert second["end"] == after


def test_retention_is_set_and_lifted(served: Served, stream: str) -> None:
    where = f"/streams/{stream}"
    assert served.ask("PATCH", where, {"age_ms_max": 5_000}).json()["age_ms_max"] == 5_000
    kept = served.ask("PATCH", where, {"bytes_max": 1}).json()
    assert (kept["age_ms_max"], kept["bytes_max"]) == (5_000, 1)
    lifted = served.ask("PATCH", where, {"age_ms_max": 0}).json()
    assert (lifted["age_ms_max"], lifted["bytes_max"]) == (None, 1)


def test_a_deleted_stream_is_gone_and_another_of_its_name_is_not_it(
    served: Served, stream: str
) -> None:
    end = position(served, stream, 1, 2, 3)
    assert served.ask("DELETE", f"/streams/{stream}").json() == {"deleted": stream}
    assert served.ask("GET", f"/streams/{stream}/rows").code == "unknown_stream"
    assert served.make(stream, "other string").status == 201
    assert served.ask("GET", f"/streams/{stream}/rows?after=0").code == "trimmed"
    description = served.ask("GET", f"/streams/{stream}").json()
    assert (description["earliest"], description["latest"], description["rows"]) == (end, end, 0)
    served.lines('{"other": "mine"}\n', stream)
    assert served.values_after(stream, "other", end) == ["mine"]


def test_a_query_is_reset_and_marks_batch_0_again(served: Served, stream: str) -> None:
    where = f"/queries/{stream}"
    served.ask("POST", f"{where}/instances", {"run": "r"})
    marker = {"instance": 1, "batch": 0, "writes": [], "commit": "e30=", "copied": 0}
    served.ask("POST", f"{where}/markers", marker)
    assert served.ask("GET", where).json()["copied"] == 0
    assert served.ask("POST", f"{where}/reset").json() == {"instance": 2}
    assert served.ask("POST", f"{where}/markers", marker).code == "fenced"
    taken = served.ask("POST", f"{where}/instances", {"run": "r2"}).json()
    assert (taken["instance"], taken["marker"]) == (3, None)
    again = {**marker, "instance": 3}
    assert served.ask("POST", f"{where}/markers", again).status == 200


def test_the_server_collects_when_told_to_and_says_who_is_away(tmp_path: Path) -> None:
    options = (
        "--set",
        "collect_s=0",
        "--set",
        "trim_after_ms=0",
        "--set",
        "consumer_away_ms_max=1",
    )
    with Served(tmp_path / "data", *options) as own:
        own.make("s")
        end = position(own, "s", 1)
        own.ask("PUT", "/consumers/g/streams/s", {"start": "latest"})
        own.ask("PATCH", "/streams/s", {"age_ms_max": 1})
        deadline = 200
        while not own.ask("GET", "/server").json()["consumers_away"] and deadline:
            deadline -= 1
        assert own.ask("POST", "/collect").json()["entries"] == 1
        assert own.ask("GET", "/streams/s").json()["earliest"] == end
        assert own.ask("GET", "/server").json()["consumers_away"] == 1


def test_a_consumer_that_stays_away_too_long_is_named(tmp_path: Path) -> None:
    away_ms = 2_000
    with Served(tmp_path / "data", "--set", f"consumer_away_ms_max={away_ms}") as own:
        own.make("s")
        end = position(own, "s", 1)
        for group in ("gone", "longer gone"):
            own.ask("PUT", f"/consumers/{group.replace(' ', '%20')}/streams/s", {"start": 0})
        heard_ms = position_heard(own, "gone")
        assert own.ask("GET", "/consumers?away=true").json() == {"consumers": []}
        # One is heard of all the time, the others never again.
        own.ask("PUT", "/consumers/here/streams/s", {"start": 0})
        until = time.monotonic() + 20
        while len(own.ask("GET", "/consumers?away=true").json()["consumers"]) < 2:
            assert time.monotonic() < until
            own.ask("POST", "/consumers/here/positions", {"streams": {"s": {"position": end}}})
            time.sleep(0.05)
        own.ask("POST", "/consumers/gone/positions", {"streams": {"s": {"position": 0}}})
        (named,) = own.ask("GET", "/consumers?away=true").json()["consumers"]
        assert (named["reader"], named["name"], named["stream"]) == ("group", "longer gone", "s")
        assert named["away_since_ms"] == named["heard_at_ms"] + away_ms
        assert heard_ms <= named["heard_at_ms"] < own.ask("GET", "/server").json()["now_ms"]
        assert own.ask("GET", "/server").json()["consumers_away"] == 1
        others = own.ask("GET", "/consumers").json()["consumers"]
        assert {each["name"]: each["away_since_ms"] for each in others if not each["is_away"]} == {
            "gone": None,
            "here": None,
        }
        # Called here, and not as a process: by the time one has started, all may be away.
        listed = CliRunner().invoke(
            consumers, ["list", "--away", "--url", own.url], env={"PENSTOCK_TOKEN": own.token}
        )
        (line,) = listed.output.splitlines()
        assert line.split("\t")[:3] == ["group", "longer gone", "s"]
        assert "away for " in line.split("\t")[-1]
        assert own.ask("GET", "/consumers?away=maybe").code == "bad_request"


def position_heard(own: Served, group: str) -> int:
    consumers = own.ask("GET", "/consumers").json()["consumers"]
    return next(int(each["heard_at_ms"]) for each in consumers if each["name"] == group)
