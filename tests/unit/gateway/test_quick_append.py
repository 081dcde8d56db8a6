"""Which bytes take the short way of an append: one whole request of the plainest form, and no
other."""

from __future__ import annotations

import pytest

from penstock.gateway.quick_append import HEAD_BYTES_MAX, plain_append
from penstock.gateway.whole_requests import is_one_request

BODY = b'{"k": 1}\n'
BYTES_MAX = 1_000


def request(
    body: bytes = BODY,
    line: str = "POST /v1/streams/s/rows HTTP/1.1",
    length: str | None = None,
    **headers: str,
) -> bytes:
    sent = {
        "Host": "here",
        "Authorization": "Bearer t",
        "Content-Type": "application/x-ndjson",
        "Content-Length": str(len(body)) if length is None else length,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [line, *(f"{name}: {value}" for name, value in sent.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def test_a_plain_request_is_taken_apart() -> None:
    call = plain_append(request(Penstock_Producer="p", Penstock_Sequence="7"), BYTES_MAX)
    assert call is not None
    assert (call.stream, call.body) == ("s", BODY)
    assert call.headers["penstock-producer"] == "p"
    assert call.headers["penstock-sequence"] == "7"
    assert plain_append(request(b""), BYTES_MAX) is not None


@pytest.mark.parametrize(
    "data",
    [
        request(line="POST /v1/streams/s/rows HTTP/1.0"),
        request(line="POST /v1/streams/s/rows?substream=1 HTTP/1.1"),
        request(line="POST /v1/streams/s%41/rows HTTP/1.1"),
        request(line="POST /v1/streams/s/entries HTTP/1.1"),
        request(line="POST  /v1/streams/s/rows HTTP/1.1"),
        request(line="GET /v1/streams/s/rows HTTP/1.1"),
        request(line="POST /v1/streams/../rows HTTP/1.1"),
        request() + b"P",
        request()[:-1],
        request(length="+9"),
        request(length="0x9"),
        request(length="8, 9"),
        request(length=""),
        request(length="٩".encode().decode("latin-1")),
        request(Transfer_Encoding="chunked"),
        request(Content_Encoding="gzip"),
        request(Expect="100-continue"),
        request(Connection="close"),
        request(Upgrade="h2c"),
        request(X_Unknown="1"),
        request(User_Agent="a\tb"),
        request(User_Agent="a\x00b"),
        request(User_Agent="a\rb"),
        request(User_Agent="a\nb: c"),
        request(User_Agent="ä"),
        request(User_Agent="x" * HEAD_BYTES_MAX),
        request(b"x" * (BYTES_MAX + 1)),
        request().replace(b"Host: here\r\n", b""),
        request().replace(b"Host: here\r\n", b"Host: here\r\nHost: here\r\n"),
        request().replace(b"Content-Length:", b"Content-Length: 9\r\ncontent-length:"),
        request().replace(b"Host:", b"Host :"),
        request().replace(b"Authorization: ", b" Authorization: "),
        request().replace(b"Host: here", b"Host"),
        request().replace(b"\r\n", b"\n"),
    ],
)
def test_anything_else_takes_the_long_way(data: bytes) -> None:
    assert plain_append(data, BYTES_MAX) is None


GET = b"GET /v1/streams HTTP/1.1\r\nHost: here\r\n\r\n"


@pytest.mark.parametrize("data", [request(), request(b""), GET, request(X_Unknown="1")])
def test_a_request_that_is_whole_is_known_as_one(data: bytes) -> None:
    assert is_one_request(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GET + b"G",
        GET + GET,
        GET[:-1],
        request()[:-1],
        request() + GET,
        request(Transfer_Encoding="chunked"),
        request(length="+9"),
        request(length="9 9"),
        request(length=""),
        request().replace(b"Content-Length:", b"Content-Length: 9\r\nContent-Length:"),
        request().replace(b"Content-Length:", b"Content-Length :"),
        request(Connection="Upgrade"),
    ],
)
def test_what_may_be_less_or_more_than_one_request_is_not(data: bytes) -> None:
    assert not is_one_request(data)
