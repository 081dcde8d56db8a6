"""One door to every decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.log.contract import (
    AppendFiles,
    AppendPending,
    AppendRecord,
    AppendRows,
    CreateStream,
    Mark,
    Operation,
    SetAux,
    TakeQuery,
)
from penstock.log.decide.checkpoint_files import decide_files
from penstock.log.decide.consumers import (
    decide_forget,
    decide_move,
    decide_register,
)
from penstock.log.decide.markers import decide_marker, decide_take_over
from penstock.log.decide.records import decide_aux, decide_record
from penstock.log.decide.rows import decide_pending, decide_rows, decide_stream
from penstock.log.decide.streams import (
    decide_alter,
    decide_delete_query,
    decide_delete_stream,
    decide_reset,
    decide_sweep,
)
from penstock.log.decide.trims import (
    decide_reclaim,
    decide_trim_query,
    decide_trim_stream,
    decide_trim_tag,
)
from penstock.log.retired_operations import Align, RetiredOperation, StartBarrier
from penstock.log.upkeep import (
    AlterStream,
    DeleteQuery,
    DeleteStream,
    ForgetConsumer,
    MovePosition,
    Reclaim,
    Register,
    ResetQuery,
    SweepStream,
    TrimQuery,
    TrimStream,
    TrimTag,
)
from penstock.log.view import Plan, View


def _changes_nothing(_operation: RetiredOperation, _view: View) -> Plan:
    return Plan(None)


_OTHERS: dict[type, Callable[[Any, View], Plan]] = {
    Align: _changes_nothing,
    StartBarrier: _changes_nothing,
    Register: decide_register,
    MovePosition: decide_move,
    ForgetConsumer: decide_forget,
    TrimStream: decide_trim_stream,
    TrimQuery: decide_trim_query,
    TrimTag: decide_trim_tag,
    Reclaim: decide_reclaim,
    AlterStream: decide_alter,
    DeleteStream: decide_delete_stream,
    SweepStream: decide_sweep,
    ResetQuery: decide_reset,
    DeleteQuery: decide_delete_query,
}


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
        case AppendRecord():
            return decide_record(operation, view)
        case SetAux():
            return decide_aux(operation, view)
        case _:
            return _OTHERS[type(operation)](operation, view)
