"""Over TLS a connection counts, and is timed, from the moment it is there: before its handshake."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from support.servers.certificates import Certificate, make_certificate
from support.servers.http_server import START_S, Served, table
from support.servers.open_sockets import is_ended, is_open

T = TypeVar("T")
HERE = "127.0.0.1"
SOCKET_S_MAX = 30.0
"""Less than the time that asyncio gives a handshake if it is not told, which is a minute."""
# The beginning of the first message of a handshake, which would be of 512 bytes.
HALF_A_HELLO = b"\x16\x03\x01\x02\x00\x01"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"), HERE)


@contextmanager
def serving(folder: Path, certificate: Certificate, *settings: str) -> Iterator[Served]:
    """A server over TLS; unless it is set otherwise it ends no connection for an hour."""
    patient = ("stall_s_max=3600", "idle_s_max=3600", *settings)
    options = [option for each in patient for option in ("--set", each)]
    data, context = folder / "data", certificate.trusting()
    with Served(data, *certificate.options, *options, context=context) as served:
        yield served


def silent(served: Served, sent: bytes = b"") -> socket.socket:
    """A connection without a handshake, on which this has been sent."""
    sock = socket.create_connection((HERE, port_of(served)), timeout=SOCKET_S_MAX)
    sock.sendall(sent)
    return sock


def port_of(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


def secured(served: Served, certificate: Certificate) -> ssl.SSLSocket:
    """A connection after its handshake."""
    return certificate.trusting().wrap_socket(silent(served), server_hostname=HERE)


def fed(act: Callable[[], T], received: ssl.MemoryBIO, sock: socket.socket) -> T:
    """What a client does once it has received enough for it."""
    while True:
        try:
            return act()
        except ssl.SSLWantReadError:
            piece = sock.recv(1 << 16)
            assert piece, "the server has closed the connection"
            received.write(piece)


def test_beside_more_silent_clients_than_the_bound_an_append_is_answered(
    tmp_path: Path, certificate: Certificate
) -> None:
    """Connections are taken in their order: with the append all that came before have been."""
    with (
        serving(tmp_path, certificate, "connections_max=4") as served,
        ExitStack() as opening,
    ):
        served.make()
        sent = [b"", HALF_A_HELLO] * 6
        waiting = [opening.enter_context(silent(served, each)) for each in sent]
        assert served.append(table(1)).status == 200
        assert all(is_ended(sock) for sock in waiting[:9])
        assert all(is_open(sock) for sock in waiting[9:])


def test_a_handshake_that_does_not_come_is_ended(tmp_path: Path, certificate: Certificate) -> None:
    with serving(tmp_path, certificate, "stall_s_max=1") as served:
        began = time.monotonic()
        with silent(served) as nothing, silent(served, HALF_A_HELLO) as half:
            assert is_ended(nothing)
            assert time.monotonic() - began > 1
            assert is_ended(half)


def test_at_the_bound_while_none_is_idle_a_new_connection_is_ended_before_its_handshake(
    tmp_path: Path, certificate: Certificate
) -> None:
    with (
        serving(tmp_path, certificate, "connections_max=2") as served,
        ExitStack() as opening,
    ):
        served.make()
        head = served.append_head(10, "Expect: 100-continue\r\n").encode("ascii")
        held = [opening.enter_context(secured(served, certificate)) for _ in range(2)]
        for sock in held:
            sock.sendall(head)
            assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        with silent(served) as refused:
            assert is_ended(refused)
        for sock in held:
            sock.sendall(b'{"k": 123}')
            assert sock.recv(12) == b"HTTP/1.1 200"


def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(
    tmp_path: Path, certificate: Certificate
) -> None:
    body = b'{"k": 123}'
    with serving(tmp_path, certificate) as served, silent(served) as sock:
        served.make()
        received, unsent = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = certificate.trusting().wrap_bio(received, unsent, server_hostname=HERE)
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        sock.sendall(unsent.read())
        fed(client.do_handshake, received, sock)
        client.write(served.append_head(len(body)).encode("ascii") + body)
        sock.sendall(unsent.read())
        assert fed(lambda: client.read(12), received, sock) == b"HTTP/1.1 200"
        assert served.values() == [123]


def test_who_breaks_a_handshake_off_is_no_fault_of_the_server(
    tmp_path: Path, certificate: Certificate
) -> None:
    with serving(tmp_path, certificate) as served:
        served.make()
        for sent in (b"", HALF_A_HELLO):
            silent(served, sent).close()
        with silent(served, b"GET /v1/health HTTP/1.1\r\nHost: here\r\n\r\n") as in_clear:
            assert b"HTTP" not in in_clear.recv(100)
        assert served.append(table(1)).status == 200
        with silent(served, HALF_A_HELLO):
            assert served.append(table(2)).status == 200
            served.process.terminate()
            assert served.process.communicate(timeout=START_S)[1] == ""
