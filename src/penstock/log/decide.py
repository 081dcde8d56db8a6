"""One door to every decision."""

from __future__ import annotations

from penstock.log.appends import decide_pending, decide_rows, decide_stream
from penstock.log.contract import (
    AppendFiles,
    AppendPending,
    AppendRows,
    CreateStream,
    Mark,
    Operation,
    TakeQuery,
)
from penstock.log.files import decide_files
from penstock.log.markers import decide_marker, decide_take_over
from penstock.log.view import Plan, View


def decide(operation: Operation, view: View) -> Plan:
    """What `operation` changes in the state seen through `view`, or the refusal raised."""
    match operation:
        case CreateStream():
            return decide_stream(operation, view)
        case AppendRows():
            return decide_rows(operation, view)
        case AppendPending():
            return decide_pending(operation, view)
        case AppendFiles():
            return decide_files(operation, view)
        case TakeQuery():
            return decide_take_over(operation, view)
        case Mark():
            return decide_marker(operation, view)
