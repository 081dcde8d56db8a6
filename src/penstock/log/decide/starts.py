"""Decide on places that were answered before they were synced: whether a marker may name them."""

from __future__ import annotations

import msgspec

from penstock.errors import BadCall
from penstock.log.operations import AppendFiles, AppendPending, Operation
from penstock.log.rules import STARTS_NAMED
from penstock.log.view import View
from penstock.model.ids import offsets_batch
from penstock.model.marker import Marker


def may_be_early(operation: Operation) -> bool:
    """Whether the operation may be answered before it is synced: nobody can see what it appends
    before a marker names it. Recorded offsets count by themselves, and so never are."""
    if isinstance(operation, AppendFiles):
        return all(offsets_batch(file.path) is None for file in operation.files)
    return isinstance(operation, AppendPending)


def check_starts(marker: Marker, view: View) -> None:
    """Refuse a marker that names places which a start of the log gave out and lost: another entry
    may lie there by now."""
    if marker.starts is msgspec.UNSET or view.rules.version < STARTS_NAMED:
        return
    for given in marker.starts:
        below = view.given_below(given.start)
        if given.last >= below:
            raise BadCall(
                f"the marker of batch {marker.batch} of the query {marker.query!r} names places up "
                f"to {given.last} that the log gave out in its start {given.start}, which ended "
                f"before they were synced: of that start there is what lies below {below}; what "
                "was appended is lost and nobody has seen it. Restart the query: it goes on from "
                "the last marker",
                code="other_start",
                status=409,
            )
