"""Tasks in a simulated world of the log: they speak the protocol of generic records by themselves.

A task copies the input to records of its own, marks spans of them, and is fenced by the condition
on its task log alone.
"""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.log.operations import AppendRecord, MovePosition
from penstock.log.reading.visible import Range, entries_in, latest
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, Instance, Lsn
from penstock.model.task_records import Claim, Control, Progress, decode_control, encode_control
from simulation.log.expected_entries import Truth
from simulation.log.producers_and_queries import is_readable, stream_of, unexpected
from simulation.log.readers import check_moved, move
from simulation.log.servers import Call, Client, Cluster, Server
from simulation.log.setup import INPUT


def output_tag(task: str, place: int) -> str:
    return f"x/{task}/{place}"


class Task(Client):
    """One instance of a task, from its claim to its end."""

    def __init__(self, cluster: Cluster, truth: Truth, task: str, number: int) -> None:
        super().__init__(f"{task} run {number}")
        self.cluster, self.truth, self.task, self.number = cluster, truth, task, number
        self.log_tag = f"x/log/{task}"
        self.phase = "claim"
        self.instance = Instance(0)
        self.tail = BEFORE_ALL  # the last record of the task log that this instance knows of
        self.position = 0
        self.until = 0
        self.first = self.seq = 0

    def act(self) -> None:
        self.cluster.retry(self)
        server = self.cluster.any_up()
        match self.phase:
            case "claim" if not self.calls:
                self.claim(server.replica.view())
            case "recover":
                self.recover(server.replica.view())
            case "work" if not self.calls:
                self.work(server)
            case "mark" if not self.calls:
                self.mark()

    def claim(self, view: StoreView) -> None:
        tail = view.tail(self.log_tag) or BEFORE_ALL
        last = self.control(view, tail)
        if isinstance(last, Claim) and last.run == self.name:
            self.taken(last.instance, tail)
            return
        self.instance = Instance(last.instance + 1 if last is not None else 1)
        self.append(Claim(self.task, self.instance, self.name), tail)

    def control(self, view: StoreView, lsn: Lsn) -> Control | None:
        entry = view.entry(lsn) if lsn else None
        return decode_control(entry.payload) if entry is not None else None

    def append(self, control: Control, tail: Lsn) -> None:
        tags = [self.log_tag]
        if isinstance(control, Progress):
            tags += [output_tag(self.task, n) for n in range(self.cluster.setup.substreams)]
        self.cluster.call(
            self,
            AppendRecord(
                tuple(tags),
                encode_control(control),
                expect=self.expected(tail),
                producer=self.task,
                instance=self.instance,
            ),
        )

    def expected(self, tail: Lsn) -> tuple[str, Lsn] | None:
        """The fence: nobody else has appended to the task log."""
        return (self.log_tag, tail)

    def taken(self, instance: Instance, tail: Lsn) -> None:
        self.instance, self.tail, self.phase = instance, tail, "recover"

    def recover(self, view: StoreView) -> None:
        """How far the task had come: its last marker before the claim, which must be known here."""
        if (view.tail(self.log_tag) or BEFORE_ALL) < self.tail:
            return
        for lsn in view.tagged(self.log_tag):
            control = self.control(view, lsn)
            if isinstance(control, Progress) and lsn < self.tail:
                self.position = control.positions[INPUT]
        self.phase = "work"

    def work(self, server: Server) -> None:
        """Append what comes of a few commits of the input, several records at a time."""
        view = server.replica.view()
        stream = stream_of(view, INPUT)
        if not self.may_read(view, stream):
            return
        commits = list(view.commits(stream, self.position + 1, latest(view, stream)))
        if not commits:
            return
        setup, rng = self.cluster.setup, self.cluster.rng
        count = rng.randint(1, min(len(commits), setup.span_max))
        self.until, self.first = commits[count - 1].lsn, self.seq
        for _, lsn in entries_in(view, Range(stream, Lsn(self.position), self.until)):
            value = f"{bytes(view.payload(lsn)).decode()}|{self.instance}"
            tag = output_tag(self.task, rng.randrange(setup.substreams))
            self.cluster.call(
                self,
                AppendRecord((tag,), value.encode(), None, self.task, self.instance, self.seq),
            )
            self.seq += 1
        self.phase = "mark"

    def may_read(self, view: StoreView, stream: StreamRecord) -> bool:
        """What an instance that was taken over has still to read may be trimmed: it is over."""
        if self.truth.claims.get(self.task) != self.instance:
            last = self.control(view, view.tail(self.log_tag) or BEFORE_ALL)
            self.alive = last is None or last.instance <= self.instance
            return False
        return is_readable(view, stream, self.position, self.name)

    def mark(self) -> None:
        positions = {INPUT: Lsn(self.until)}
        self.append(
            Progress(self.task, self.instance, self.first, self.seq - 1, positions), self.tail
        )

    def answered(self, call: Call) -> None:
        outcome, operation = call.outcome, call.operation
        if isinstance(operation, MovePosition):
            check_moved(call)
            return
        assert outcome is not None  # answered means that it has one
        assert isinstance(operation, AppendRecord)  # a task appends nothing else
        if outcome.refusal is not None:
            self.refused(call, operation, outcome.refusal)
        elif operation.seq is None:
            self.done(decode_control(operation.payload), outcome.answer)

    def done(self, control: Control, lsn: Lsn) -> None:
        if isinstance(control, Claim):
            self.taken(control.instance, lsn)
        else:
            self.tail, self.position, self.phase = lsn, self.until, "work"
            self.cluster.call(self, move(self.task, INPUT, Lsn(self.until)))

    def refused(self, call: Call, operation: AppendRecord, refusal: PenstockError) -> None:
        """A conflict may be with this instance's own record, whose answer was lost: look again."""
        if refusal.code != "conflict" or operation.seq is not None:
            raise unexpected(call)
        for server in self.cluster.servers:
            view = server.replica.view()
            tail = view.tail(self.log_tag) or BEFORE_ALL
            current = self.control(view, tail)
            if isinstance(current, Progress) and current == decode_control(operation.payload):
                self.done(current, tail)
                return
            if current is not None and current.instance > self.instance:
                self.alive = False
                return
