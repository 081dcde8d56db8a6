"""A proxy before a server that lets questions to admission be held for longer than they ask for.

What comes of a held question then says why it ended: a hold that lasts much longer than anything
else in a test was not ended by its time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from support.servers.forwarding_proxy import Answer, ForwardingProxy, Request


@dataclass
class HeldQuestion:
    """A question that asked to be held, and the end it was answered with, once it was."""

    after: int
    end: int | None = None


class HoldingProxy(ForwardingProxy):
    """Forwards every request; one to admission that may be held is held for `hold_s`."""

    def __init__(self, server_url: str, hold_s: float) -> None:
        super().__init__(server_url, 2 * hold_s)
        self.held: list[HeldQuestion] = []
        self._hold_s = hold_s

    def answer(self, request: Request) -> Answer:
        if request.path != "/v1/admission" or not json.loads(request.body)["wait_ms"]:
            return self.forward(request)
        asked = json.loads(request.body)
        question = HeldQuestion(asked["after"])
        self.held.append(question)
        body = json.dumps({**asked, "wait_ms": int(self._hold_s * 1000)}).encode()
        answer = self.forward(replace(request, body=body))
        if answer.status == 200:
            question.end = json.loads(answer.body)["end"]
        return answer
