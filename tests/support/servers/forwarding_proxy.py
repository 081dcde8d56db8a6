"""A proxy before a server, for tests that answer some of its requests otherwise."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

PASSED = ("Authorization", "Content-Type", "Accept", "Penstock-Protocol")


@dataclass(frozen=True)
class Request:
    """A request as it came, with the headers that the server behind looks at."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """An answer as it goes back."""

    status: int
    headers: dict[str, str]
    body: bytes


class ForwardingProxy:
    """Forwards every request, and every answer as it is; a subclass overrides `answer`."""

    def __init__(self, server_url: str, timeout_s: float = 120.0) -> None:
        self._timeout_s = timeout_s
        self._server = urlsplit(server_url).netloc
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                proxy._serve(self)

            do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - the base names them so

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, request: Request) -> Answer:
        """The answer to a request; here, the server's."""
        return self.forward(request)

    def forward(self, request: Request) -> Answer:
        """Ask the server behind."""
        connection = HTTPConnection(self._server, timeout=self._timeout_s)
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        kept = {
            name: value
            for name, value in answer.getheaders()
            if name == "Content-Type" or name.startswith("Penstock-")
        }
        return Answer(answer.status, kept, content)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        passed = {name: handler.headers[name] for name in PASSED if name in handler.headers}
        answer = self.answer(Request(handler.command, handler.path, passed, body))
        # Who asked may have gone while the question was held.
        with contextlib.suppress(ConnectionError):
            handler.send_response(answer.status)
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(answer.body)))
            handler.end_headers()
            handler.wfile.write(answer.body)
