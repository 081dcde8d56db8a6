"""A proxy before a server that lets questions to admission be held for longer than they ask for.

What comes of a held question then says why it ended: a hold that lasts much longer than anything
else in a test was not ended by its time.
"""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class HeldQuestion:
    """A question that asked to be held, and the end it was answered with, once it was."""

    after: int
    end: int | None = None


class HoldingProxy:
    """Forwards every request; one to admission that may be held is held for `hold_s`."""

    def __init__(self, server_url: str, hold_s: float) -> None:
        self.held: list[HeldQuestion] = []
        self._hold_s = hold_s
        self._server = urlsplit(server_url).netloc
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _forward(self) -> None:
                proxy._forward(self)

            do_GET = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815 - the base names them so

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> HoldingProxy:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _forward(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        question: HeldQuestion | None = None
        if handler.path == "/v1/admission" and json.loads(body)["wait_ms"]:
            asked = json.loads(body)
            question = HeldQuestion(asked["after"])
            self.held.append(question)
            body = json.dumps({**asked, "wait_ms": int(self._hold_s * 1000)}).encode()
        passed = {
            name: handler.headers[name]
            for name in ("Authorization", "Content-Type", "Accept", "Penstock-Protocol")
            if name in handler.headers
        }
        connection = HTTPConnection(self._server, timeout=2 * self._hold_s)
        try:
            connection.request(handler.command, handler.path, body, passed)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if question is not None and answer.status == 200:
            question.end = json.loads(content)["end"]
        # Who asked may have gone while the question was held.
        with contextlib.suppress(ConnectionError):
            handler.send_response(answer.status)
            for name, value in answer.getheaders():
                if name == "Content-Type" or name.startswith("Penstock-"):
                    handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
