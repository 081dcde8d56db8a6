"""Rows in and out over HTTP, as any client would do it."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from support.servers.http_server import ARROW, JSON_LINES, Served, ipc, table


def test_rows_in_arrow_come_back_in_arrow(served: Served, name: str) -> None:
    assert served.make(name).status == 201
    answer = served.append(table(1, 2, 3), name)
    assert answer.status == 200
    assert answer.json()["rows"] == 3
    assert not answer.json()["duplicate"]
    back = served.ask("GET", f"/streams/{name}/rows")
    assert back.headers["Content-Type"] == ARROW
    assert int(back.headers["Content-Length"]) == len(back.body)
    assert int(back.headers["Penstock-Position"]) == answer.json()["position"]
    assert back.table().to_pylist() == table(1, 2, 3).to_pylist()


def test_json_lines_carry_every_type_both_ways(served: Served, name: str) -> None:
    served.make(
        name,
        "a boolean, b tinyint, d decimal(10,2), e binary, f date, g timestamp, h timestamp_ntz, "
        "i array<string>, j struct<x:int,`y z`:string>, m map<string,double>, n float",
    )
    line = (
        '{"a":true,"b":-128,"d":"1.20","e":"aGk=","f":"2026-01-02","g":"2026-01-02T03:04:05.000006Z",'
        '"h":"2026-01-02T03:04:05","i":["x",null],"j":{"x":1,"y z":null},"m":{"k":1.5},"n":0.5}\n'
    )
    assert served.lines(line + "\n" + '{"a":null}\n', name).status == 200
    back = served.ask("GET", f"/streams/{name}/rows", Accept=JSON_LINES)
    first, second = back.body.decode().splitlines()
    assert first + "\n" == line
    assert set(second) <= set('{"abdefghijmn":null,}')


def test_csv_is_read_by_its_header(served: Served, name: str) -> None:
    served.make(name, "k bigint, v string, at timestamp")
    body = 'v,at,k\n"a, b",2026-01-01T00:00:00Z,1\n,,2\n'
    answer = served.ask("POST", f"/streams/{name}/rows", body, Content_Type="text/csv")
    assert answer.status == 200, answer.body
    back = served.ask("GET", f"/streams/{name}/rows", Accept=JSON_LINES).body.decode()
    assert back.splitlines() == [
        '{"k":1,"v":"a, b","at":"2026-01-01T00:00:00Z"}',
        '{"k":2,"v":null,"at":null}',
    ]


def test_rows_go_to_the_substream_of_their_key_and_keep_their_order(
    served: Served, name: str
) -> None:
    served.make(name, substreams=3, key=["k"])
    keys = [number % 10 for number in range(100)]
    rows = pa.table({"k": keys, "v": [str(n) for n in range(100)]})
    served.append(rows, name)
    seen: dict[int, set[int]] = {}
    for place in range(3):
        part = served.ask("GET", f"/streams/{name}/rows?substream={place}").table()
        order = [int(v) for v in part.column("v").to_pylist()]
        assert order == sorted(order)
        seen[place] = set(part.column("k").to_pylist())
    assert sum(map(len, seen.values())) == len(set(keys)) == 10


def test_a_substream_named_wins_and_round_robin_is_by_request(served: Served, name: str) -> None:
    served.make(name, substreams=2)
    served.append(table(7), name, "?substream=1")
    assert served.ask("GET", f"/streams/{name}/rows?substream=1").table().num_rows == 1
    for key in range(4):
        served.append(table(key), name)
    assert served.ask("GET", f"/streams/{name}/rows?substream=0").table().num_rows == 2
    assert served.ask("GET", f"/streams/{name}/rows?substream=1").table().num_rows == 3


def test_a_range_is_paged_by_cursor_and_stays_as_it_was(served: Served, name: str) -> None:
    served.make(name, substreams=2)
    for key in range(10):
        served.append(table(2 * key, 2 * key + 1), name)
    first = served.ask("GET", f"/streams/{name}/rows?after=0&bytes=1")
    until = first.headers["Penstock-Position"]
    cursor = first.headers["Penstock-Cursor"]
    served.append(table(99), name)
    seen = first.table().column("k").to_pylist()
    pages = 1
    while cursor:
        path = f"/streams/{name}/rows?after=0&until={until}&cursor={cursor}&bytes=500"
        page = served.ask("GET", path)
        seen += page.table().column("k").to_pylist()
        cursor = page.headers.get("Penstock-Cursor", "")
        pages += 1
    assert seen == list(range(20))
    assert pages > 3
    rest = served.ask("GET", f"/streams/{name}/rows?after={until}")
    assert rest.table().column("k").to_pylist() == [99]


def test_an_empty_answer_is_held_until_there_is_something(patient: Served, name: str) -> None:
    patient.make(name)
    began = time.monotonic()
    threading.Timer(0.3, lambda: patient.append(table(1), name)).start()
    answer = patient.ask("GET", f"/streams/{name}/rows?wait_ms=60000")
    assert answer.table().num_rows == 1
    assert 0.3 <= time.monotonic() - began < 50


def test_an_answer_that_stays_empty_comes_when_time_is_up(served: Served, name: str) -> None:
    served.make(name)
    began = time.monotonic()
    answer = served.ask("GET", f"/streams/{name}/rows?wait_ms=200")
    assert answer.table().num_rows == 0
    assert answer.headers["Penstock-Position"] == "0"
    assert time.monotonic() - began >= 0.19


def test_positions_are_found_by_name_and_by_time(served: Served, name: str) -> None:
    served.make(name)
    first = served.append(table(1), name).json()["position"]
    last = served.append(table(2), name).json()["position"]
    ask = f"/streams/{name}/position"
    assert served.ask("GET", f"{ask}?at=earliest").json() == {"position": 0}
    assert served.ask("GET", f"{ask}?at=latest").json() == {"position": last}
    assert served.ask("GET", f"{ask}?time_ms=0").json() == {"position": 0}
    assert served.ask("GET", f"{ask}?time_ms=99999999999999").json() == {"position": last}
    assert served.ask("GET", f"{ask}?at=first").code == "bad_request"
    assert first < last


def test_a_stream_says_what_it_holds_and_is_made_once(served: Served, name: str) -> None:
    made = served.make(name, substreams=2, key=["k"]).json()
    assert made["ddl"] == "k bigint, v string"
    assert (made["substreams"], made["key"], made["earliest"]) == (2, ["k"], 0)
    served.append(table(1, 2), name)
    again = served.make(name)
    assert again.status == 200
    assert (again.json()["rows"], again.json()["substreams"]) == (2, 2)
    assert again.json()["bytes"] > 0
    assert served.ask("PUT", f"/streams/{name}", {"schema": made["schema"]}).status == 200
    different = served.make(name, "k bigint")
    assert (different.status, different.code) == (409, "stream_differs")
    assert name in [s["name"] for s in served.ask("GET", "/streams").json()["streams"]]


def test_a_repeated_sequence_is_not_appended_again(served: Served, name: str) -> None:
    served.make(name)
    headers = {"Penstock_Producer": "meter-1", "Penstock_Sequence": "7"}
    first = served.append(table(1), name, **headers).json()
    again = served.append(table(1), name, **headers).json()
    assert again == {**first, "duplicate": True}
    assert served.values(name) == [1]


def test_a_large_batch_is_split_by_rows(served: Served, name: str) -> None:
    served.make(name)
    rows = pa.table({"k": range(40), "v": ["x" * (1 << 20)] * 40})
    answer = served.append(rows, name).json()
    assert answer["rows"] == 40
    assert len(answer["entries"]) > 2
    assert served.values(name) == list(range(40))


def test_dictionaries_and_compression_are_unpacked_on_the_way_in(served: Served, name: str) -> None:
    served.make(name)
    rows = pa.table({"v": pa.array(["x", "y", "x"]).dictionary_encode(), "k": [1, 2, 3]})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    body = sink.getvalue().to_pybytes()
    assert served.ask("POST", f"/streams/{name}/rows", body, Content_Type=ARROW).status == 200
    assert served.ask("GET", f"/streams/{name}/rows").table().column("v").to_pylist() == [
        "x",
        "y",
        "x",
    ]


@pytest.mark.parametrize("empty", [pa.table({"k": pa.array([], pa.int64()), "v": []})])
def test_no_rows_are_no_append(served: Served, name: str, empty: pa.Table) -> None:
    served.make(name, "k bigint, v string")
    rows = empty.set_column(1, "v", pa.array([], pa.string()))
    answer = served.ask("POST", f"/streams/{name}/rows", ipc(rows), Content_Type=ARROW)
    assert answer.json() == {"position": 0, "rows": 0, "entries": [], "duplicate": False}
