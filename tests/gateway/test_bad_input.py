"""Everything a client can send wrong gets a code and a sentence, and changes nothing."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pytest

from penstock.log.backends.jetstream.log import META_BYTES
from support.servers.http_server import ARROW, JSON_LINES, Answer, Served, ipc, table


@pytest.fixture
def stream(served: Served, name: str) -> str:
    served.make(name, substreams=2)
    return name


def is_refused(answer: Answer, status: int, code: str, *facts: str) -> None:
    assert (answer.status, answer.code) == (status, code), answer.body
    for fact in facts:
        assert fact in answer.message
    assert answer.message[0].islower() or answer.message[0] in "'{"


@pytest.mark.parametrize("token", [None, "wrong"])
def test_a_missing_or_wrong_token_is_refused(served: Served, token: str | None) -> None:
    answer = served.ask("GET", "/streams", token=token)
    is_refused(answer, 401, "unauthorized", "send 'Authorization: Bearer TOKEN'")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert served.ask("GET", "/health", token=token).status == 200


def test_an_unknown_route_is_told_from_a_wrong_method(served: Served) -> None:
    is_refused(served.ask("GET", "/wibble"), 404, "unknown_route", "GET /v1/wibble")
    is_refused(served.ask("PUT", "/server"), 404, "unknown_route", "it takes GET, HEAD")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('{"k":1}\n{"k":"x"}\n', "line 2 is not a row of this stream: Expected `int | null`"),
        ('{"k":1}\n\n{"k":\n', "line 3"),
        ('{"zz":1}\n', "line 1 is not a row of this stream: Object contains unknown field `zz`"),
        ("hello\n", "line 1"),
        ("[1]\n", "line 1"),
        ('{"k":99999999999999999999}\n', "line 1"),
        ('{"v":"\ud800"}\n'.encode("utf-8", "surrogatepass").decode("latin-1"), "line 1"),
    ],
)
def test_malformed_json_lines_are_refused_with_the_line(
    served: Served, stream: str, text: str, fact: str
) -> None:
    body = text.encode("latin-1")
    answer = served.ask("POST", f"/streams/{stream}/rows", body, Content_Type=JSON_LINES)
    is_refused(answer, 400, "bad_rows", fact)
    assert served.values(stream) == []


@pytest.mark.parametrize(
    ("text", "code", "fact"),
    [
        ("k,v\n1,a\nx,b\n", "bad_rows", "Row #3: CSV conversion error to int64: invalid value 'x'"),
        ("k,v\n1,a\n2\n", "bad_rows", "Row #3: Expected 2 columns, got 1"),
        ("", "bad_rows", "Empty CSV"),
        ("k\n1\n", "rows_do_not_fit", "lack 'v'"),
        ("k,v,w\n1,a,b\n", "rows_do_not_fit", "have an unknown 'w'"),
    ],
)
def test_malformed_csv_is_refused_with_the_row(
    served: Served, stream: str, text: str, code: str, fact: str
) -> None:
    answer = served.ask("POST", f"/streams/{stream}/rows", text, Content_Type="text/csv")
    is_refused(answer, 400, code, fact)


def test_csv_cannot_carry_nested_columns(served: Served, name: str) -> None:
    served.make(name, "tags array<string>")
    answer = served.ask("POST", f"/streams/{name}/rows", "tags\nx\n", Content_Type="text/csv")
    is_refused(answer, 400, "bad_rows", "'tags' of type array<string> cannot be written in CSV")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not arrow at all",
        ipc(table(1, 2, 3))[:-40],
        b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x00" * 16,
        ipc(table(1, value="abcd")).replace(b"abcd", b"\xff\xfe\xfd\xfc"),
    ],
    ids=["empty", "text", "cut short", "zeros", "not UTF-8"],
)
def test_malformed_arrow_is_refused(served: Served, stream: str, body: bytes) -> None:
    answer = served.ask("POST", f"/streams/{stream}/rows", body, Content_Type=ARROW)
    is_refused(answer, 400, "bad_rows", "not a whole Arrow IPC stream")
    assert served.ask("GET", "/health").status == 200


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        ({"k": [1]}, "lack 'v'"),
        ({"k": [1], "v": ["x"], "w": [1]}, "have an unknown 'w'"),
        ({"k": ["one"], "v": ["x"]}, "column 'k' of type string does not fit bigint"),
    ],
)
def test_arrow_rows_of_another_shape_do_not_fit(
    served: Served, stream: str, rows: dict[str, list[Any]], fact: str
) -> None:
    is_refused(served.append(pa.table(rows), stream), 400, "rows_do_not_fit", fact)


def test_a_content_type_nobody_reads_is_refused(served: Served, stream: str) -> None:
    answer = served.ask("POST", f"/streams/{stream}/rows", b"x", Content_Type="text/html")
    is_refused(answer, 400, "bad_request", "'text/html' is not read here", "text/csv")


def test_an_unknown_stream_is_refused_everywhere(served: Served) -> None:
    for answer in (
        served.append(table(1), "nowhere"),
        served.ask("GET", "/streams/nowhere"),
        served.ask("GET", "/streams/nowhere/rows"),
        served.ask("GET", "/streams/nowhere/position?at=latest"),
        served.ask("POST", "/admission", {"stream": "nowhere", "after": 0}),
    ):
        is_refused(answer, 404, "unknown_stream", "'nowhere'")


@pytest.mark.parametrize("name", ["1st", "a%2Fb", "-x", "x" * 121, "a%20b"])
def test_a_name_that_is_none_is_refused(served: Served, name: str) -> None:
    is_refused(served.make(name), 400, "bad_name", "is not a stream name")


@pytest.mark.parametrize(
    ("body", "code", "fact"),
    [
        ("{", "bad_request", "the body is not JSON"),
        ("[]", "bad_request", "Expected `object`, got `array`"),
        ('{"ddl": 1}', "bad_request", "at `$.ddl`"),
        ('{"ddl": "k bigint", "wibble": 1}', "bad_request", "unknown field `wibble`"),
        ("{}", "bad_schema", "give either 'schema'"),
        ('{"ddl": "k wibble"}', "bad_schema", "'wibble' is not a type"),
        ('{"schema": "AAAA"}', "bad_schema", "not the base64 of an Arrow IPC schema"),
        ('{"ddl": "k bigint", "substreams": 0}', "bad_request", "1 to 256 substreams"),
        ('{"ddl": "k bigint", "substreams": -1}', "bad_request", "at `$.substreams`"),
        ('{"ddl": "k bigint", "key": ["x"]}', "bad_request", "the key names 'x'"),
        ('{"ddl": "k bigint", "key": ["k", "k"]}', "bad_request", "names a column twice"),
    ],
)
def test_a_bad_stream_is_refused(
    served: Served, name: str, body: str, code: str, fact: str
) -> None:
    is_refused(served.ask("PUT", f"/streams/{name}", body), 400, code, fact)


def test_a_stream_without_a_type_spark_has_is_refused(served: Served, name: str) -> None:
    schema = pa.schema([("c", pa.uint32())])
    text = base64.b64encode(schema.serialize().to_pybytes()).decode()
    answer = served.ask("PUT", f"/streams/{name}", {"schema": text})
    is_refused(answer, 400, "bad_schema", "column 'c' has the type uint32", "use bigint")


@pytest.mark.parametrize(
    ("query", "code", "fact"),
    [
        ("?substream=2", "substream_out_of_range", "substreams 0 to 1, and 2"),
        ("?substream=-1", "bad_request", "substream is '-1'"),
        ("?after=99999999", "position_past_end", "the position 99999999 is past the end"),
        ("?until=99999999", "position_past_end", "the position 99999999 is past the end"),
        ("?after=x", "bad_request", "after is 'x'"),
        ("?cursor=1:0", "bad_request", "a cursor goes with 'until'"),
        ("?until=0&cursor=0:0", "bad_request", "cursor is '0:0'"),
        ("?until=0&cursor=x", "bad_request", "cursor is 'x'"),
        ("?wait_ms=soon", "bad_request", "wait_ms is 'soon'"),
    ],
)
def test_a_bad_read_is_refused(
    served: Served, stream: str, query: str, code: str, fact: str
) -> None:
    is_refused(served.ask("GET", f"/streams/{stream}/rows{query}"), 400, code, fact)


@pytest.mark.parametrize(
    ("query", "headers", "code"),
    [
        ("?substream=2", {}, "substream_out_of_range"),
        ("?key=w", {}, "bad_request"),
        ("", {"Penstock_Producer": "p"}, "bad_request"),
        ("", {"Penstock_Sequence": "1"}, "bad_request"),
        ("", {"Penstock_Producer": "p", "Penstock_Sequence": "-1"}, "bad_request"),
        ("", {"Penstock_Producer": "p" * 201, "Penstock_Sequence": "1"}, "bad_request"),
    ],
)
def test_a_bad_append_is_refused(
    served: Served, stream: str, query: str, headers: dict[str, str], code: str
) -> None:
    is_refused(served.append(table(1), stream, query, **headers), 400, code)
    assert served.values(stream) == []


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        ({"instance": 1, "batch": -1, "writes": []}, "at `$.batch`"),
        ({"instance": 1, "writes": []}, "missing required field `batch`"),
        ({"instance": 1, "batch": 0, "writes": [], "commit": "%"}, "'commit' is not base64"),
        ({"instance": 1, "batch": 0, "writes": [{"stream": "s"}]}, "at `$.writes[0]`"),
    ],
)
def test_a_bad_marker_is_refused(served: Served, body: dict[str, Any], fact: str) -> None:
    is_refused(served.ask("POST", "/queries/q/markers", body), 400, "bad_request", fact)


def test_a_row_over_the_bound_of_an_entry_is_refused(served: Served, stream: str) -> None:
    answer = served.append(table(1, value="x" * (17 << 20)), stream)
    bound = answer.message.partition("an entry has at most ")[2].partition(";")[0]
    # In JetStream an entry is a message, and the servers of the tests take 8 MiB.
    assert int(bound) in (16 << 20, (8 << 20) - META_BYTES)
    is_refused(answer, 413, "entry_too_large", "a row takes", "raise entry_bytes_max")
    assert served.values(stream) == []


def test_a_request_over_the_bound_is_refused_before_it_is_kept(served: Served, stream: str) -> None:
    path = f"/v1/streams/{stream}/rows"
    connection = served.connection()
    connection.putrequest("POST", path)
    for header, value in (
        ("Authorization", f"Bearer {served.token}"),
        ("Content-Type", ARROW),
        ("Content-Length", str(65 << 20)),
    ):
        connection.putheader(header, value)
    connection.endheaders(b"x" * 1000)
    answer = connection.getresponse()
    is_refused(Answer(answer.status, {}, answer.read()), 413, "request_too_large", "67108864 bytes")
    connection.close()


def test_a_request_over_the_bound_without_a_length_is_refused(tmp_path_factory: Any) -> None:
    data = tmp_path_factory.mktemp("bounded") / "data"
    with Served(data, "--set", "request_bytes_max=10000") as served:
        served.make()
        connection = served.connection()
        headers = {"Authorization": f"Bearer {served.token}", "Content-Type": JSON_LINES}
        chunks = iter([b'{"k":1}\n' * 1000] * 3)
        connection.request("POST", "/v1/streams/s/rows", chunks, headers, encode_chunked=True)
        answer = connection.getresponse()
        is_refused(Answer(answer.status, {}, answer.read()), 413, "request_too_large")
        connection.close()
        assert served.values() == []
