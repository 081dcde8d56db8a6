"""Whether a server has left a connection open."""

from __future__ import annotations

import socket


def is_open(sock: socket.socket) -> bool:
    """Whether the server has left the connection open until now, and sent nothing on it."""
    sock.setblocking(False)
    try:
        sock.recv(1)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


def is_ended(sock: socket.socket) -> bool:
    """Whether the server ends the connection within the socket's own limit."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
