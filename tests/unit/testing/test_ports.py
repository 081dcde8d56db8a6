"""Ports for servers that come back at the same place."""

from __future__ import annotations

import itertools
import socket

import pytest

from penstock.testing import ports


def test_a_process_is_given_a_port_once() -> None:
    given = {ports.free_port() for _ in range(50)}
    assert len(given) == 50
    assert given <= set(ports.PORTS)


def test_a_port_on_which_somebody_listens_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    free = ports.free_port()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        taken = server.getsockname()[1]
        monkeypatch.setattr(ports, "_candidates", itertools.cycle([taken, free]))
        assert ports.free_port() == free
        monkeypatch.setattr(ports, "_candidates", itertools.repeat(taken))
        with pytest.raises(OSError, match="end some server"):
            ports.free_port()
