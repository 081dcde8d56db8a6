"""Errors, sorted by who must act.

There are five kinds and no more: a caller decides what to do by the class, a person by the
sentence. `code` is stable and travels over HTTP; the message is lower case and names the facts
and the remedy.
"""

from __future__ import annotations

from typing import ClassVar


class PenstockError(Exception):
    """Base of every error raised on purpose. `act` says who must act."""

    act: ClassVar[str] = "report this"
    status: ClassVar[int] = 500

    def __init__(self, message: str, *, code: str, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.http_status = status if status is not None else self.status


class TryAgain(PenstockError):
    """Nothing was changed, or the outcome is unknown; the same call may succeed later."""

    act = "retry"
    status = 503


class BadCall(PenstockError):
    """The call cannot succeed as it is; change it. Nothing was changed."""

    act = "change the call"
    status = 400


class Fenced(PenstockError):
    """A newer instance of the query has taken over; this one must stop and not retry."""

    act = "stop"
    status = 409


class Damaged(PenstockError):
    """Stored bytes are not what was written; an operator must restore or cut them."""

    act = "restore the data"
    status = 500


class Bug(PenstockError):
    """A broken promise of our own code."""

    act = "report this"
    status = 500


_KINDS: dict[str, type[PenstockError]] = {
    kind.act: kind for kind in (TryAgain, BadCall, Fenced, Damaged, Bug)
}


def to_wire(error: PenstockError) -> dict[str, str]:
    """The JSON object an HTTP answer carries under `error`."""
    return {"code": error.code, "act": error.act, "message": error.message}


def from_wire(body: dict[str, str], status: int) -> PenstockError:
    """The error a client raises for an answer made by `to_wire`."""
    kind = _KINDS.get(body.get("act", ""), Bug)
    return kind(body.get("message", "no message"), code=body.get("code", "bug"), status=status)
