"""Names in an operation: whatever becomes part of a key must fit into one, on every server."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import BadCall
from penstock.log import operations as op
from penstock.log.rules import NAMES_BOUNDED
from penstock.log.view import View
from penstock.model.ids import KEY_TEXT_BYTES_MAX


def check_names(operation: op.Operation, view: View) -> None:
    """Refuse a name that no key can hold. Records check their own tags and producers.

    Operations of earlier versions are as they were answered: where such a name did no harm, as
    among the positions of a marker, it was accepted.
    """
    if view.rules.version < NAMES_BOUNDED:
        return
    for subject, text in (*_names(operation), *_names_of_query(operation)):
        size = len(text.encode("utf-8", "replace"))
        if not 1 <= size <= KEY_TEXT_BYTES_MAX or "\x00" in text:
            raise BadCall(
                f"{subject} is {text[:80]!r}, with {size} bytes, and must have 1 to "
                f"{KEY_TEXT_BYTES_MAX}, none of them zero; choose another",
                code="bad_request",
            )


def _names(operation: op.Operation) -> Iterator[tuple[str, str]]:
    match operation:
        case op.CreateStream() | op.AlterStream() | op.DeleteStream():
            yield "the stream's name", operation.name
        case op.AppendPending() | op.TrimStream():
            yield "the stream's name", operation.stream
        case op.AppendRows():
            yield "the stream's name", operation.stream
            yield "the producer", "none" if operation.producer is None else operation.producer
        case op.Register():
            yield "the stream's name", operation.stream
            yield "the consumer's name", operation.name
        case op.MovePosition():
            yield "the consumer's name", operation.name
            yield from (("the stream's name", move.stream) for move in operation.moves)
        case op.ForgetConsumer():
            yield "the consumer's name", operation.name
            yield "the stream's name", "any" if operation.stream is None else operation.stream
        case op.TrimTag():
            yield "the tag", operation.tag


def _names_of_query(operation: op.Operation) -> Iterator[tuple[str, str]]:
    match operation:
        case op.AppendPending():
            yield "the query id", operation.stamp.query
        case op.TakeQuery() | op.ResetQuery():
            yield "the query id", operation.query
            yield "the run", operation.run
        case op.AppendFiles() | op.DeleteQuery() | op.TrimQuery() | op.Reclaim():
            yield "the query id", operation.query
        case op.Mark():
            marker = operation.marker
            yield "the query id", marker.query
            yield from (("the stream's name", write.stream) for write in marker.writes)
            yield from (("the name of an input", name) for name in marker.positions)
