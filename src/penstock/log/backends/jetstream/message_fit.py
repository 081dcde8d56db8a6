"""Whether an operation fits into messages that the servers of JetStream take."""

from __future__ import annotations

from penstock.errors import BadCall
from penstock.log.backends.jetstream.codec import OperationId, message_sizes
from penstock.log.operations import AppendRecord, Mark, Operation

HEADERS_BYTES = 512
SAID_BYTES = 256 << 10
SUBJECT_BYTES_MAX = 2_000


def check_fits(id: OperationId, operation: Operation, payload_max: int, address: object) -> None:
    """Refuse an operation of which a message would be larger than `payload_max`."""
    most = payload_max - HEADERS_BYTES
    if isinstance(operation, AppendRecord) and len(operation.payload) + SAID_BYTES < most:
        return
    for subject, size in message_sizes(id, operation):
        if size > most or len(subject) > SUBJECT_BYTES_MAX:
            raise BadCall(
                f"{_subject(operation, size)} does not fit into a message of at most {most} bytes, "
                f"which the servers at {address} take; {_remedy(operation)}",
                code="entry_too_large",
                status=413,
            )


def _subject(operation: Operation, size: int) -> str:
    if isinstance(operation, Mark):
        marker = operation.marker
        return (
            f"the marker of batch {marker.batch} of the query {marker.query!r}, which names "
            f"{len(marker.files)} files of its checkpoint in {size} bytes,"
        )
    return f"an entry of {size} bytes with what is said of it"


def _remedy(operation: Operation) -> str:
    """A marker is one message, or a batch would become visible in parts."""
    if isinstance(operation, Mark):
        return (
            "raise their max_payload, or start the query anew with fewer partitions of its state "
            "(spark.sql.shuffle.partitions)"
        )
    return "split it, or raise their max_payload"
