"""Ports for servers that are to be found again at the same place after they were killed."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator

# Below those that Linux gives to outgoing connections. Of these, one could go to somebody's
# connection before the server it was chosen for listens there, or while that server is down.
PORTS = range(12_000, 32_000)
# Processes that start one after the other, such as the workers of a test run, begin that far apart.
APART = 100

_first = os.getpid() * APART % len(PORTS)
_candidates: Iterator[int] = itertools.cycle((*PORTS[_first:], *PORTS[:_first]))


def free_port() -> int:
    """A loopback port on which nobody listens now, and that this process has not asked for before.

    Nothing keeps it: another process that tries the same port before it is used has it, too.
    """
    for port in itertools.islice(_candidates, len(PORTS)):
        with socket.socket() as sock:
            # As servers do, so that the port of one that has just ended counts as free.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError(f"no loopback port of {PORTS.start} to {PORTS.stop - 1} is free; end some server")
