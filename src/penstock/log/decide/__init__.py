"""One door to every decision: the table says which function decides on which operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.log import operations as op
from penstock.log.decide.checkpoint_files import decide_files
from penstock.log.decide.consumers import decide_forget, decide_move, decide_register
from penstock.log.decide.fence import decide_delete_query, decide_reset, decide_take_over
from penstock.log.decide.markers import decide_marker
from penstock.log.decide.names import check_names
from penstock.log.decide.records import decide_aux, decide_record
from penstock.log.decide.rows import decide_pending, decide_rows
from penstock.log.decide.streams import (
    decide_alter,
    decide_delete_stream,
    decide_stream,
    decide_sweep,
)
from penstock.log.decide.trims import (
    decide_reclaim,
    decide_trim_query,
    decide_trim_stream,
    decide_trim_tag,
)
from penstock.log.plan import Plan
from penstock.log.retired_operations import Align, RetiredOperation, StartBarrier
from penstock.log.view import View


def _change_nothing(_operation: RetiredOperation, _view: View) -> Plan:
    return Plan(None)


DECISIONS: dict[type[Any], Callable[[Any, View], Plan]] = {
    op.CreateStream: decide_stream,
    op.AlterStream: decide_alter,
    op.DeleteStream: decide_delete_stream,
    op.SweepStream: decide_sweep,
    op.AppendRows: decide_rows,
    op.AppendPending: decide_pending,
    op.AppendFiles: decide_files,
    op.TakeQuery: decide_take_over,
    op.Mark: decide_marker,
    op.ResetQuery: decide_reset,
    op.DeleteQuery: decide_delete_query,
    op.AppendRecord: decide_record,
    op.SetAux: decide_aux,
    op.Register: decide_register,
    op.MovePosition: decide_move,
    op.ForgetConsumer: decide_forget,
    op.TrimStream: decide_trim_stream,
    op.TrimQuery: decide_trim_query,
    op.TrimTag: decide_trim_tag,
    op.Reclaim: decide_reclaim,
    Align: _change_nothing,
    StartBarrier: _change_nothing,
}


def decide(operation: op.Operation, view: View) -> Plan:
    """The plan of `operation` in the state seen through `view`, or the refusal raised."""
    check_names(operation, view)
    return DECISIONS[type(operation)](operation, view)
