"""Bugs planted in how simulated streams and queries change, each in one decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from penstock.errors import PenstockError
from penstock.log.operations import (
    AlterStream,
    AppendRows,
    DeleteQuery,
    DeleteStream,
    Operation,
    ResetQuery,
    Shape,
)
from penstock.log.plan import Plan
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn
from simulation.log.actors import LogParts
from simulation.log.producers_and_queries import Producer
from simulation.log.replica import Replica
from simulation.planted_log_bugs import Planted


class ConsumersLeftByADelete(Replica):
    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        plan = super().decide(operation, view)
        if isinstance(plan, Plan) and isinstance(operation, DeleteStream) and plan.removal:
            return replace(plan, removal=msgspec.structs.replace(plan.removal, consumers=()))
        return plan


class EndForgottenByADelete(Replica):
    """A stream made later under the name begins where the deleted one did."""

    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        plan = super().decide(operation, view)
        if isinstance(plan, Plan) and isinstance(operation, DeleteStream) and plan.removal:
            return replace(plan, removal=msgspec.structs.replace(plan.removal, points=()))
        return plan


class ResetWithoutAFence(Replica):
    """Forgets the batches, and leaves the instance that wrote them in charge."""

    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        plan = super().decide(operation, view)
        if not isinstance(plan, Plan) or not isinstance(operation, ResetQuery) or not plan.query:
            return plan
        before = view.query(operation.query)
        assert before is not None  # or it would have been refused
        kept = msgspec.structs.replace(plan.query, instance=before.instance, run=before.run)
        return replace(plan, query=kept)


class MarksLeftByAReset(Replica):
    """The batches of before are still known as marked."""

    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        plan = super().decide(operation, view)
        if isinstance(plan, Plan) and isinstance(operation, ResetQuery) and plan.removal:
            return replace(plan, removal=msgspec.structs.replace(plan.removal, marks=()))
        return plan


class InstanceForgottenByADelete(Replica):
    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        if isinstance(operation, DeleteQuery):
            return super().decide(DeleteQuery(operation.query, remember=False), view)
        return super().decide(operation, view)


class TurnForgotten(Replica):
    """A batch may then have a key in two substreams."""

    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        plan = super().decide(operation, view)
        if isinstance(plan, Plan) and isinstance(operation, AlterStream) and plan.stream:
            return replace(plan, stream=msgspec.structs.replace(plan.stream, turns=()))
        return plan


class VersionOfTheStream(Replica):
    """Says of rows that they have the columns of now, whatever they were written with."""

    def decide(self, operation: Operation, view: StoreView) -> Plan | PenstockError:
        plan = super().decide(operation, view)
        if not isinstance(plan, Plan) or not isinstance(operation, AppendRows):
            return plan
        stream = view.stream(operation.stream)
        assert stream is not None  # or it would have been refused
        entries = tuple(
            msgspec.structs.replace(
                each, head=msgspec.structs.replace(each.head, version=len(stream.versions))
            )
            for each in plan.entries
        )
        return replace(plan, entries=entries)


class RoutedAndNotTold(Producer):
    """Divides keys as the stream was, and does not say among how many."""

    def shape(self, stream: StreamRecord) -> Shape | None:
        return None


class BeganForgotten(StoreView):
    def stream(self, name: Any) -> StreamRecord | None:
        record = super().stream(name)
        return None if record is None else msgspec.structs.replace(record, began=Lsn(0))


class MarkedAcrossADelete(Replica):
    """A marker may name what was appended to the stream that had the name before."""

    def look(self, *asked: Any) -> StoreView:
        _, wall_ms, *places = asked
        return BeganForgotten(self.txn, self.tables, wall_ms, *places)


CHANGING: dict[str, Any] = {
    "changes": 12,
    "steps_max": 4_000,  # a world that a bug keeps from its end is given up soon
    "lost": 0.05,
    "repeated": 0.05,
    "speeds": (8.0, 1.0, 1.0, 1.0, 3.0, 3.0, 1.0, 0.05, 0.1, 0.3, 4.0),
}

LIFE: dict[str, Planted] = {
    "consumers left by a delete": Planted(
        LogParts(replica=ConsumersLeftByADelete), "as it was before the one", CHANGING
    ),
    "end forgotten by a delete": Planted(
        LogParts(replica=EndForgottenByADelete), "begins before the end of another", CHANGING
    ),
    "marked across a delete": Planted(
        LogParts(replica=MarkedAcrossADelete), "of a deleted stream", CHANGING
    ),
    "reset without a fence": Planted(LogParts(replica=ResetWithoutAFence), "invariant 5", CHANGING),
    "marks left by a reset": Planted(
        LogParts(replica=MarksLeftByAReset), "was refused: the query 'again' cannot mark", CHANGING
    ),
    "instance forgotten by a delete": Planted(
        LogParts(replica=InstanceForgottenByADelete), "invariant 5", CHANGING
    ),
    "turn forgotten": Planted(LogParts(replica=TurnForgotten), "over the change at", CHANGING),
    "version of the stream put on rows": Planted(
        LogParts(replica=VersionOfTheStream), "of the columns", CHANGING
    ),
    "routed by a division that has changed": Planted(
        LogParts(producer=RoutedAndNotTold), "its key goes to", CHANGING
    ),
}
