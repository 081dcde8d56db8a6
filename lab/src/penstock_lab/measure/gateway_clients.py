"""Worker: many producers over HTTP in one process, on plain sockets, so that the server is what is
measured and not its clients.

A client has a connection of its own, sends a row, waits for the answer, which says durable, and
sends the next one: a closed loop. The token is read from the environment.
"""

from __future__ import annotations

import os
import selectors
import socket
from typing import Any
from urllib.parse import urlsplit

from penstock.client.address import token_from_environment
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.percentiles import percentile

WARM_UP_SHARE = 0.2
ANSWER_BYTES_MAX = 64 << 10
CONNECT_S = 30.0


class Producer:
    """One client: its connection, its next request, and when it sent the last one."""

    def __init__(self, address: tuple[str, int], stream: str, name: str, size: int) -> None:
        self.socket = socket.create_connection(address, CONNECT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        row = b'{"v":"%s"}\n' % os.urandom((size + 1) // 2).hex()[:size].encode("ascii")
        head = (
            f"POST /v1/streams/{stream}/rows HTTP/1.1\r\nHost: {address[0]}\r\n"
            f"Authorization: Bearer {token_from_environment()}\r\n"
            f"Content-Type: application/x-ndjson\r\nContent-Length: {len(row)}\r\n"
            f"Penstock-Producer: {name}\r\nPenstock-Sequence: "
        )
        self._head = head.encode("ascii")
        self._row = row
        self.sent = 0
        self.sent_at_s = 0.0

    def send(self, now_s: float) -> None:
        self.sent += 1
        self.sent_at_s = now_s
        self.socket.sendall(b"%b%d\r\n\r\n%b" % (self._head, self.sent, self._row))

    def take_answer(self) -> None:
        answer = self.socket.recv(ANSWER_BYTES_MAX)
        if not answer.startswith(b"HTTP/1.1 200 ") or b'"duplicate":true' in answer:
            raise Bug(f"an append was answered with {answer[:300]!r}", code="wrong_answer")


def main(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    options = job.options
    parts = urlsplit(str(options["url"]))
    address = (parts.hostname or "127.0.0.1", parts.port or 80)
    stream, size = str(options["stream"]), int(options["bytes"])
    producers = [
        Producer(address, stream, f"{stream}-{number}", size)
        for number in range(int(options["clients"]))
    ]
    took_ms = drive(producers, float(options["seconds"]), clock)
    return {
        "append_per_s": len(took_ms) / float(options["seconds"]),
        "append_ms_p99": percentile(took_ms, 99) or 0.0,
        "appends": len(took_ms),
        "sent": sum(producer.sent for producer in producers),
    }


def drive(producers: list[Producer], seconds: float, clock: Clock) -> list[float]:
    """Keep every producer sending; the times of what was answered within the seconds that count."""
    answers = selectors.DefaultSelector()
    warm_s = clock.monotonic_s() + WARM_UP_SHARE * seconds
    end_s = warm_s + seconds
    took_ms: list[float] = []
    for producer in producers:
        answers.register(producer.socket, selectors.EVENT_READ, producer)
        producer.send(clock.monotonic_s())
    waiting = len(producers)
    while waiting:
        for key, _ in answers.select():
            producer = key.data
            producer.take_answer()
            now_s = clock.monotonic_s()
            if warm_s < now_s <= end_s:
                took_ms.append((now_s - producer.sent_at_s) * 1000)
            if now_s <= end_s:
                producer.send(now_s)
            else:
                waiting -= 1
    for producer in producers:
        producer.socket.close()
    return took_ms


if __name__ == "__main__":
    serve(main)
