"""A server of the protocol before: it answers as the server behind it does, and names its own."""

from __future__ import annotations

from dataclasses import replace

from penstock.model.protocol import PROTOCOL, PROTOCOL_HEADER
from support.servers.forwarding_proxy import Answer, ForwardingProxy, Request

EARLIER = str(PROTOCOL - 1)


class EarlierServer(ForwardingProxy):
    """Names another protocol than the server behind it, whatever it is asked."""

    def answer(self, request: Request) -> Answer:
        answer = self.forward(request)
        return replace(answer, headers={**answer.headers, PROTOCOL_HEADER: EARLIER})
