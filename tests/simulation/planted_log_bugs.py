"""Bugs planted in the simulated world of the log, each by a class that differs in one decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.errors import PenstockError
from penstock.log.backends.jetstream.replay import Delivered
from penstock.log.backends.outcomes import decided
from penstock.log.operations import AppendFiles, AppendPending, Mark, Operation, TrimStream
from penstock.log.plan import ProducerRecord
from penstock.log.raw.classify import Classifier, Saved, Verdict
from penstock.log.raw.entry_facts import Marks
from penstock.log.raw.repeats import Duplicates
from penstock.log.reading.visible import latest
from penstock.log.retention.due import steps
from penstock.log.state import QueryRecord, StreamRecord
from penstock.log.store.view import StoreView
from penstock.log.view import Place
from penstock.model.ids import Instance, Lsn, QueryId
from penstock.model.marker import Write
from penstock.settings.server import Settings
from simulation.log.actors import LogParts
from simulation.log.producers_and_queries import Attempt, Run
from simulation.log.readers import RawReader
from simulation.log.replica import Applied, Replica
from simulation.log.servers import Call, Server
from simulation.log.state_dump import Base
from simulation.log.tasks import Task


def instance_of(operation: Operation) -> Instance | None:
    match operation:
        case Mark():
            return operation.marker.instance
        case AppendPending():
            return operation.stamp.instance
        case AppendFiles():
            return operation.instance
    return None


class UnfencedView(StoreView):
    """Everybody is the current instance."""

    believed: Instance | None = None

    def query(self, query: QueryId) -> QueryRecord | None:
        record = super().query(query)
        if record is None or self.believed is None:
            return record
        return msgspec.structs.replace(record, instance=self.believed)


class FenceMissing(Replica):
    def look(
        self, operation: Operation, wall_ms: int, places: tuple[Place, ...] | None = None
    ) -> StoreView:
        view = UnfencedView(self.txn, self.tables, wall_ms, places)
        view.believed = instance_of(operation)
        return view


class FenceCheckedBeforeTheAppend(Server):
    """Decides on its own view, which may be behind, and publishes without a condition."""

    def take(self, call: Call) -> None:
        if self.cluster.alone:
            super().take(call)
            return
        plan = decided(call.operation, self.replica.view())
        if isinstance(plan, PenstockError) and plan.code == "fenced":
            self.cluster.answer(self, call, Applied(plan))
            return
        self.publish(call)
        self.outbox[-1].contended = None


class ForgetfulView(StoreView):
    def producer(self, stream: StreamRecord, producer: str) -> ProducerRecord | None:
        return None


class FilterOff(Replica):
    def look(
        self, operation: Operation, wall_ms: int, places: tuple[Place, ...] | None = None
    ) -> StoreView:
        return ForgetfulView(self.txn, self.tables, wall_ms, places)


class StampedByItsServer(Server):
    def follow(self) -> None:
        message = self.cluster.stream[self.replica.followed]
        own = message._replace(at_ms=self.cluster.now_ms)
        self.cluster.stream[self.replica.followed] = own
        super().follow()
        self.cluster.stream[self.replica.followed - 1] = message


class PurgedPastWhatIsThere(Base):
    def write_down(self, replica: Replica, stream: list[Delivered]) -> None:
        super().write_down(replica, stream)
        end = Lsn(replica.followed + 1)
        self.asked = [(subject, end) for subject, _ in self.asked]


class OlderStateNamed(Base):
    def may_replace(self, lsn: Lsn) -> bool:
        return True


def forget_at_once(view: StoreView, now_ms: int, settings: Settings) -> list[Operation]:
    return [
        msgspec.structs.replace(step, forget=step.until) if isinstance(step, TrimStream) else step
        for step in steps(view, now_ms, settings)
    ]


def trim_past_everyone(view: StoreView, now_ms: int, settings: Settings) -> list[Operation]:
    return [TrimStream(each.name, latest(view, each), away_ms=0) for each in view.streams()]


class LastAttemptNamed(Run):
    def writes(self) -> tuple[Write, ...]:
        def last(partition: int) -> Attempt:
            tried = [
                attempt
                for attempt in self.attempts
                if attempt.partition == partition and attempt.entries
            ]
            return max(tried, key=lambda attempt: attempt.number)

        return tuple(
            msgspec.structs.replace(
                write,
                attempt=last(write.partition).number,
                entries=tuple(last(write.partition).entries),
            )
            for write in super().writes()
        )


class OffsetsCutAnew(Run):
    def recorded(self, view: StoreView) -> tuple[int, int] | None:
        return None


class ReadFromWhoeverAnswers(Run):
    """Does not ask whether the server has come to this run's own take-over."""

    def knows(self, record: QueryRecord | None) -> bool:
        return record is not None


class MarkedWithoutCondition(Task):
    def expected(self, tail: Lsn) -> tuple[str, Lsn] | None:
        return None


class EveryAttemptTaken(Classifier):
    def _marks(self, fact: Marks) -> list[Verdict]:
        return super()._marks(msgspec.structs.replace(fact, names=None))


class EveryAttemptRead(RawReader):
    classifier = EveryAttemptTaken


class WaitingForgotten(Classifier):
    def saved(self) -> Saved:
        return msgspec.structs.replace(super().saved(), first=self._next)


class RestartedBehindWhatWaits(RawReader):
    classifier = WaitingForgotten


class NoFilter(Duplicates):
    def is_repeat(self, producer: str, seq: int, arrived_at_ms: int) -> bool:
        return False


class RepeatsRead(RawReader):
    def start(self) -> None:
        super().start()
        self.reader._repeats = NoFilter(0, 1)


class ReadersFilterTrimmedTooSoon(RawReader):
    def start(self) -> None:
        self.bounds = msgspec.structs.replace(self.bounds, repeats_kept_ms=0)
        super().start()


class ReadPastWhatIsSettled(RawReader):
    def until(self, view: StoreView) -> Lsn:
        return Lsn(view.next_lsn - 1)


class AsideNeverRecalled(RawReader):
    """Takes the buffer's bound for the end of the matter."""

    def again(self, view: StoreView, asked: Any) -> Any:
        return iter(())


@dataclass(frozen=True)
class Planted:
    """A planted bug; what reports it has `sentence` in it: its own invariant, not an accident.

    `where` fixes parts of the setup for bugs that show only in some; `seeds` is the most worlds it
    may take.
    """

    parts: LogParts
    sentence: str
    where: dict[str, Any] = field(default_factory=dict)
    seeds: int = 80


SEVERAL: dict[str, Any] = {"servers": 3}
UNFILTERED: dict[str, Any] = {"filters_records": False, "repeated": 0.2, "lost": 0.15}
# Faults: query crash, query zombie, task crash, task zombie, server, reader, clock.
ZOMBIES: dict[str, Any] = {"faults": (0, 3, 0, 3, 0, 0, 0), "fault_rate": 0.08, "tasks": 1}
RESTARTS: dict[str, Any] = {"faults": (1, 0, 0, 0, 0, 4, 0), "fault_rate": 0.08}
# Speeds: messages, producers, query, tasks, publishing, applying, readers, collector, state, late
# copies, those who change streams and queries.
SMALL: dict[str, Any] = {"tasks": 0, "substreams": 1, "attempts_max": 1, "cut_max": 1, "changes": 0}
TRIMS: dict[str, Any] = {
    **SMALL,
    "servers": 1,
    "producers": 1,
    "appends": 3,
    "trim_after_ms": 0,
    "repeated": 0.4,
    "lost": 0.15,
    "fault_rate": 0.0,
    "fault_steps": 400,
    "speeds": (4.0, 0.05, 4.0, 1.0, 1.0, 1.0, 4.0, 2.0, 0.0, 1.0),
}
RACES: dict[str, Any] = {
    **SMALL,
    "servers": 3,
    "faults": (0, 1, 0, 0, 0, 0, 0),
    "fault_rate": 0.05,
    "fault_steps": 250,
    "speeds": (8.0, 1.0, 4.0, 1.0, 1.0, 4.0, 0.2, 0.02, 0.0, 0.1),
}
LAGS: dict[str, Any] = {
    **SMALL,
    "servers": 3,
    "producers": 2,
    "appends": 6,
    "cut_max": 4,
    "lost": 0.0,
    "repeated": 0.0,
    "faults": (2, 0, 0, 0, 3, 0, 0),
    "fault_rate": 0.04,
    "fault_steps": 600,
    "speeds": (8.0, 1.0, 6.0, 1.0, 6.0, 6.0, 0.05, 0.0, 0.0, 0.1),
}

LOG: dict[str, Planted] = {
    "fence missing": Planted(LogParts(replica=FenceMissing), "invariant 5", ZOMBIES),
    "fence checked before the append": Planted(
        LogParts(server=FenceCheckedBeforeTheAppend, replica=FenceMissing),
        "invariant 5",
        RACES,
    ),
    "filter off": Planted(LogParts(replica=FilterOff), "invariant 8"),
    "filter trimmed too soon": Planted(LogParts(steps=forget_at_once), "invariant 8", TRIMS),
    "reader's filter off": Planted(LogParts(raw_reader=RepeatsRead), "invariant 8", UNFILTERED),
    "reader's filter trimmed too soon": Planted(
        LogParts(raw_reader=ReadersFilterTrimmedTooSoon), "invariant 8", UNFILTERED
    ),
    "trim past a slow reader": Planted(LogParts(steps=trim_past_everyone), "invariant 9"),
    "a later attempt's entries named": Planted(
        LogParts(run=LastAttemptNamed), "invariant 1", {"attempts_max": 3}
    ),
    "a later attempt's entries taken": Planted(
        LogParts(raw_reader=EveryAttemptRead), "invariant 8", {"attempts_max": 3}
    ),
    "offsets cut anew": Planted(LogParts(run=OffsetsCutAnew), "invariant 6"),
    "task log read from a server that is behind": Planted(
        LogParts(run=ReadFromWhoeverAnswers), "invariant 6", LAGS
    ),
    "marked without condition": Planted(
        LogParts(task=MarkedWithoutCondition), "invariant 5", ZOMBIES
    ),
    "what waits forgotten at a restart": Planted(
        LogParts(raw_reader=RestartedBehindWhatWaits), "invariant 8", RESTARTS
    ),
    "read past what is settled": Planted(
        LogParts(raw_reader=ReadPastWhatIsSettled), "invariant 8", SEVERAL
    ),
    "set aside and never recalled": Planted(
        LogParts(raw_reader=AsideNeverRecalled), "invariant 8", {"unknown_max": 1}
    ),
    "older state put in place of a newer one": Planted(
        LogParts(base=OlderStateNamed),
        "no state replaces it",
        {
            **SEVERAL,
            "faults": (0, 0, 0, 0, 1, 0, 0),
            "fault_rate": 0.05,
            "speeds": (4.0, 2.0, 2.0, 1.0, 3.0, 1.5, 1.0, 0.2, 2.0, 0.1),
        },
    ),
    "purged past what is still there": Planted(
        LogParts(base=PurgedPastWhatIsThere),
        "payloads",
        {**SEVERAL, "faults": (0, 0, 0, 0, 1, 0, 0), "fault_rate": 0.08},
    ),
    "entries stamped by each server's own clock": Planted(
        LogParts(server=StampedByItsServer), "another said", SEVERAL
    ),
}
