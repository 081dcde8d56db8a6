"""Clients that stall, trickle or hold on to connections cost the others nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from support.servers.http_server import START_S, Served, table
from support.servers.open_sockets import is_open

SOON_S = 1.0
"""Within which an append is answered beside whatever else goes on."""
TRY_S_MAX = 25.0
"""Within which it is answered on a machine that is busy with other things, too."""
PATIENT = ("--set", "stall_s_max=3600")
"""Of a server that ends nobody who stalls while a test lasts: nobody is served because it does."""


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that gives a connection a second for what it moves, and two when it does nothing."""
    folder = tmp_path_factory.mktemp("strict") / "data"
    with Served(folder, "--set", "stall_s_max=1", "--set", "idle_s_max=2") as served:
        served.make()
        yield served


def opened(served: Served, head: str = "", body: bytes = b"") -> socket.socket:
    """A connection on which this much has been sent."""
    host, _, port = served.url.partition("//")[2].rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=START_S)
    sock.sendall(head.encode("ascii") + body)
    return sock


def get_head(served: Served, path: str) -> str:
    return f"GET /v1{path} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {served.token}\r\n\r\n"


def rest_of(sock: socket.socket) -> bytes:
    """All that comes until the server closes; ends by the socket's own limit if it does not."""
    received = b""
    try:
        while piece := sock.recv(1 << 16):
            received += piece
    except ConnectionResetError:
        pass
    return received


def answers_soon(served: Served, key: int, rows: int = 1, value: str = "x") -> None:
    """The quickest of a few tries: on a machine that is busy with other things any may be late, but
    not as late as one that waits for somebody to be ended."""
    took_s: list[float] = []
    while not took_s or (min(took_s) >= SOON_S and len(took_s) < 5):
        began = time.monotonic()
        assert served.append(table(*[key] * rows, value=value)).status == 200
        took_s.append(time.monotonic() - began)
        assert took_s[-1] < TRY_S_MAX
    assert min(took_s) < SOON_S


def test_beside_forty_stalled_uploads_an_append_is_answered_within_a_second(
    tmp_path: Path,
) -> None:
    half = b'{"k": 1}\n' * 50_000
    with Served(tmp_path / "data", *PATIENT) as served, ExitStack() as opening:
        served.make()
        head = served.append_head(2 * len(half))
        uploads = [opening.enter_context(opened(served, head, half)) for _ in range(40)]
        answers_soon(served, 1)
        # One that needs as much room as the stalled ones is answered, too.
        answers_soon(served, 2, rows=50_000)
        assert all(is_open(sock) for sock in uploads)


def test_beside_forty_stalled_uploads_that_fill_the_memory_an_append_is_answered_within_a_second(
    tmp_path: Path,
) -> None:
    """Forty halves of 8 MiB each are more than there is room for."""
    half = b'{"k": 1, "v": "' + b"x" * (8 << 20)
    with Served(tmp_path / "data", *PATIENT) as served, ExitStack() as opening:
        served.make()
        head = served.append_head(2 * len(half))
        uploads = []
        for _ in range(40):
            uploads.append(opening.enter_context(opened(served, head)))
            uploads[-1].settimeout(SOON_S)
            with suppress(TimeoutError):
                uploads[-1].sendall(half)
        answers_soon(served, 1, rows=8_000)
        answers_soon(served, 2, value="x" * (8 << 20))
        refusal = rest_of(uploads[0])
        assert refusal.startswith(b"HTTP/1.1 408 ")
        assert b"others waited for the memory it holds" in refusal


def test_beside_slow_backups_the_server_answers(tmp_path: Path) -> None:
    with Served(tmp_path / "data", *PATIENT) as served, ExitStack() as opening:
        served.make()
        for _ in range(4):
            # More than the kernel keeps for a reader that does not read.
            served.append(table(1, value="x" * (8 << 20)))
        for _ in range(4):
            sock = opening.enter_context(opened(served, get_head(served, "/backup")))
            assert sock.recv(12) == b"HTTP/1.1 200"
        answers_soon(served, 2)
        assert served.values("s")[-1] == 2
        refused = served.ask("GET", "/backup")
        assert (refused.status, refused.code) == (503, "busy")


def test_a_slow_backup_leaves_no_reader_in_the_store(tmp_path: Path) -> None:
    """Space that is trimmed can be used again while somebody takes a copy slowly: the file does not
    grow by what is appended and trimmed."""
    big = "x" * (4 << 20)
    with Served(tmp_path / "data") as served:
        served.make()
        for _ in range(4):
            served.append(table(1, value=big))
        with opened(served, get_head(served, "/backup")) as sock:
            assert sock.recv(12) == b"HTTP/1.1 200"
            grown = file_bytes(served)
            for _ in range(12):
                position = served.append(table(1, value=big)).json()["position"]
                assert served.ask("POST", "/streams/s/trim", {"until": position}).status == 200
            assert file_bytes(served) < grown + (24 << 20)


def file_bytes(served: Served) -> int:
    return (served.data / "log" / "data.mdb").stat().st_size


@pytest.mark.parametrize("sent", ["", "POST /v1/streams/s/rows HTTP/1.1\r\nHost: he"])
def test_a_request_whose_head_does_not_come_is_ended(strict: Served, sent: str) -> None:
    began = time.monotonic()
    with opened(strict, sent) as sock:
        answer = rest_of(sock)
    took_s = time.monotonic() - began
    assert answer == b"" if not sent else answer.startswith(b"HTTP/1.1 408 ")
    assert took_s > (1 if sent else 2)


def test_a_connection_that_asks_now_and_then_is_kept(strict: Served) -> None:
    """Each pause is shorter than it may be, all of them together are longer."""
    connection = strict.connection()
    for _ in range(6):
        time.sleep(0.7)
        connection.request("GET", "/v1/health")
        assert connection.getresponse().read()
    connection.close()


def test_a_body_that_stops_or_trickles_is_ended_with_a_sentence(strict: Served) -> None:
    body = b'{"k": 1}\n' * 10
    with opened(strict, strict.append_head(len(body)), body[:20]) as sock:
        stopped = rest_of(sock)
    with opened(strict, strict.append_head(len(body)), body[:20]) as sock:
        sock.settimeout(0.1)
        trickled = b""
        while not trickled:
            try:
                trickled = sock.recv(1 << 16)
            except TimeoutError:
                sock.sendall(b" ")
    for answer in (stopped, trickled):
        assert answer.startswith(b"HTTP/1.1 408 ")
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert (error["code"], error["act"]) == ("too_slow", "retry")
        assert "within 1 s" in error["message"]
    assert strict.values() == []


def test_who_does_not_take_an_answer_is_ended(tmp_path: Path) -> None:
    with Served(tmp_path / "data", "--set", "stall_s_max=1") as served:
        served.make()
        for _ in range(3):
            assert served.append(table(1, value="x" * (8 << 20))).status == 200
        with opened(served, get_head(served, "/streams/s/rows?bytes=67108864")) as sock:
            time.sleep(4)  # twice what it is given, and the time between two looks
            assert len(rest_of(sock)) < 24 << 20


def test_a_body_that_comes_slowly_and_steadily_is_taken(strict: Served) -> None:
    """Each second brings more than 64 KiB: all of it takes longer than any one limit."""
    body = b'{"k": null, "v": "' + b"x" * (1 << 20) + b'"}\n'
    pieces = [body[start : start + (128 << 10)] for start in range(0, len(body), 128 << 10)]
    with opened(strict, strict.append_head(len(body))) as sock:
        for piece in pieces:
            sock.sendall(piece)
            time.sleep(0.3)
        assert sock.recv(12) == b"HTTP/1.1 200"


def test_at_the_bound_the_connection_idle_longest_makes_room(tmp_path: Path) -> None:
    with Served(tmp_path / "data", "--set", "connections_max=4") as served, ExitStack() as opening:
        served.make()
        idle = [opening.enter_context(opened(served)) for _ in range(4)]
        answers_soon(served, 1)
        assert idle[0].recv(1) == b""
        # All four in use, each with half a request: a fifth is told so.
        head = served.append_head(10, "Expect: 100-continue\r\n")
        held = [opening.enter_context(opened(served, head)) for _ in range(4)]
        for sock in held:
            assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        with opened(served) as refused:
            answer = rest_of(refused)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b'"busy"' in answer
        for sock in held:
            sock.sendall(b'{"k": 123}')
            assert sock.recv(12) == b"HTTP/1.1 200"


def test_who_goes_away_in_the_middle_is_no_fault_of_the_server(tmp_path: Path) -> None:
    with Served(tmp_path / "data") as served:
        served.make()
        with opened(served, served.append_head(100), b"{"):
            answers_soon(served, 1)
        answers_soon(served, 2)
        served.process.terminate()
        assert served.process.communicate(timeout=START_S)[1] == ""
