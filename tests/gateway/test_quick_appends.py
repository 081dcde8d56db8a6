"""Appends by the short way and by the long one are the same to their producers."""

from __future__ import annotations

import json
import socket
from typing import Any

from support.servers.http_server import Served
from support.servers.processes import wait_until


def append(served: Served, stream: str, body: str, *more: str) -> bytes:
    """A request of the plainest form; with another header that is not known there, the long way."""
    lines = (
        f"POST /v1/streams/{stream}/rows HTTP/1.1",
        "Host: here",
        f"Authorization: Bearer {served.token}",
        "Content-Type: application/x-ndjson",
        f"Content-Length: {len(body)}",
        *more,
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


class Wire:
    """A connection that sends bytes as they are and takes answers apart."""

    def __init__(self, served: Served) -> None:
        host, _, port = served.url.partition("//")[2].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")

    def answer(self) -> tuple[int, Any]:
        status = int(self._file.readline().split()[1])
        length = 0
        while (line := self._file.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return status, json.loads(self._file.read(length))

    def ask(self, data: bytes) -> tuple[int, Any]:
        self.socket.sendall(data)
        return self.answer()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()


LONG_WAY = "X-Way: long"


def test_both_ways_answer_alike(served: Served, name: str) -> None:
    served.make(name)
    bodies = ('{"k": 1}\n', '{"k": "x"}\n', '{"zz": 1}\n', "", "nothing\n")
    with Wire(served) as wire:
        for body in bodies:
            answers = [wire.ask(append(served, name, body, *way)) for way in ((), (LONG_WAY,), ())]
            statuses = {status for status, _ in answers}
            codes = {said.get("error", {}).get("code") for _, said in answers}
            fields = {tuple(sorted(said)) for _, said in answers}
            assert (len(statuses), len(codes), len(fields)) == (1, 1, 1), answers
        assert wire.ask(append(served, "nowhere", bodies[0]))[1]["error"]["code"] == (
            "unknown_stream"
        )
        wrong = append(served, name, bodies[0]).replace(served.token.encode(), b"wrong-token")
        assert wire.ask(wrong)[0] == 401
    assert served.values(name) == [1, 1, 1]


def test_a_repeat_by_the_other_way_is_a_repeat(served: Served, name: str) -> None:
    served.make(name)
    numbered = ("Penstock-Producer: p", "Penstock-Sequence: 1")
    with Wire(served) as wire:
        first = wire.ask(append(served, name, '{"k": 1}\n', *numbered))[1]
        again = wire.ask(append(served, name, '{"k": 1}\n', *numbered, LONG_WAY))[1]
    assert not first["duplicate"]
    assert again == {**first, "duplicate": True}


def test_requests_one_after_the_other_are_answered_in_their_order(
    served: Served, name: str
) -> None:
    """Some come while an append is on its short way, in pieces and several at once."""
    served.make(name)
    with Wire(served) as wire:
        for round in range(5):
            numbers = range(10 * round, 10 * round + 6)
            appends = [append(served, name, f'{{"k": {number}}}\n') for number in numbers]
            wire.socket.sendall(appends[0])
            wire.socket.sendall(appends[1] + appends[2][:50])
            wire.socket.sendall(appends[2][50:] + appends[3])
            wire.socket.sendall(appends[4].replace(b"\r\n\r\n", f"\r\n{LONG_WAY}\r\n\r\n".encode()))
            wire.socket.sendall(appends[5])
            positions = [wire.answer()[1]["position"] for _ in numbers]
            assert positions == sorted(positions)
    assert served.values(name) == [10 * round + number for round in range(5) for number in range(6)]


def test_a_body_never_passes_for_a_request(served: Served, name: str) -> None:
    """The second request comes in two parts, and the rest of its body looks like an append."""
    served.make(name)
    hidden = append(served, name, '{"k": 666}\n')
    head, _, _ = append(served, name, "").partition(b"Content-Length: 0")
    whole = append(served, name, '{"k": 1}\n', LONG_WAY)
    with Wire(served) as wire:
        outer = head + f"Content-Length: {len(hidden)}\r\n\r\n".encode()
        assert wire.ask(whole + outer)[0] == 200
        status, said = wire.ask(hidden)
        assert (status, said["error"]["code"]) == (400, "bad_rows")
        assert wire.ask(append(served, name, '{"k": 2}\n'))[0] == 200
    assert served.values(name) == [1, 2]


def test_a_stream_that_is_altered_or_made_anew_is_seen(served: Served, name: str) -> None:
    served.make(name)
    with Wire(served) as wire:
        assert wire.ask(append(served, name, '{"k": 1}\n'))[0] == 200
        served.ask("PATCH", f"/streams/{name}", {"add": "w bigint", "substreams": 3})
        assert wire.ask(append(served, name, '{"k": 2, "w": 5}\n'))[0] == 200
        served.ask("DELETE", f"/streams/{name}?force=1")
        served.make(name, "z bigint")
        assert wire.ask(append(served, name, '{"z": 3}\n'))[0] == 200
        wait_until(
            "rows of the stream that was are refused",
            lambda: wire.ask(append(served, name, '{"k": 1}\n'))[0] == 400,
        )
    rows = served.ask("GET", f"/streams/{name}/rows").table()
    assert rows.column("z").to_pylist() == [3]
