"""Refusals of the HTTP interface: the body of every error answer, for server and client."""

from __future__ import annotations

import msgspec

from penstock.errors import PenstockError, from_wire, to_wire


class ErrorFields(msgspec.Struct, frozen=True):
    """An error as it travels; the defaults are for a server that leaves something out."""

    code: str = "bug"
    act: str = ""
    message: str = "no message"


class Refusal(msgspec.Struct, frozen=True):
    """The body of an answer by which a server refuses a request, or says that it failed."""

    error: ErrorFields

    def as_error(self, status: int) -> PenstockError:
        """The error that a client raises for it."""
        return from_wire(msgspec.structs.asdict(self.error), status)


def refusal_of(error: PenstockError) -> Refusal:
    """The body that tells a client of an error."""
    return Refusal(ErrorFields(**to_wire(error)))
