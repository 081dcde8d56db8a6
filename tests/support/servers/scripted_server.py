"""An HTTP server that gives the answers it was told to, in order, and remembers the questions."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Say:
    """One answer. `hang_up`: close the connection without a word, as a killed server does."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False
    first: Callable[[], None] | None = None


def say(value: Any, status: int = 200) -> Say:
    return Say(status, json.dumps(value).encode())


def refuse(code: str, act: str, status: int, message: str = "as told") -> Say:
    return say({"error": {"code": code, "act": act, "message": message}}, status)


HANG_UP = Say(hang_up=True)


class ScriptedServer:
    """Answers the script, then its last answer for ever, as a server of this protocol; None: as one
    that names none."""

    def __init__(self, protocol: int | None = PROTOCOL) -> None:
        self._named = {} if protocol is None else {PROTOCOL_HEADER: str(protocol)}
        self.asked: list[Asked] = []
        self._script: deque[Say] = deque()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                outer._answer(self)

            do_GET = do_PUT = do_POST = _answer  # noqa: N815 - the base class names them so

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def script(self, *answers: Say) -> None:
        self._script.extend(answers)

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        with self._lock:
            self.asked.append(
                Asked(request.command, request.path, dict(request.headers.items()), body)
            )
            answer = self._script.popleft() if len(self._script) > 1 else self._script[0]
        if answer.first is not None:
            answer.first()
        if answer.hang_up:
            request.close_connection = True
            return
        request.send_response(answer.status)
        for name, value in {**self._named, **answer.headers}.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer.body)))
        request.end_headers()
        request.wfile.write(answer.body)
