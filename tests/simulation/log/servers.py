"""Clients, servers and what lies between them in a simulated world of the log."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from penstock.log.backends.jetstream.codec import (
    Message,
    OperationId,
    contended,
    messages,
    void_message,
)
from penstock.log.backends.jetstream.replay import Delivered, last_on, open_operation
from penstock.log.decide.starts import may_be_early
from penstock.log.operations import Operation
from penstock.model.ids import Lsn
from simulation.log.replica import Applied, Replica
from simulation.log.setup import LogSetup
from simulation.log.state_dump import Base

PATIENCE = 40
"""Steps a client waits before it sends a call again."""
LIFE_STEPS = 600
"""Steps a message between a client and a server may be under way."""
VOID_STEPS = 80
"""Steps an operation may wait for its last message before somebody declares it void."""
LANDED_RATE = 0.15
"""How often what was answered early is synced at once, with nothing else to bring a sync."""
FAILED_RATE = 0.05
"""How often the sync of what was answered early fails, and all of it is lost."""


class Client:
    """Someone who calls; a dead one hears no answer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.calls: list[Call] = []

    def answered(self, call: Call) -> None:
        """An answer has come, for the first time."""


@dataclass(eq=False)
class Call:
    """An operation under way, sent again until it is answered or given up."""

    owner: Client
    operation: Operation
    opened_at: int
    sent_at: int
    tries: int = 0
    outcome: Applied | None = None
    is_early: bool = False  # its owner takes an answer before the sync


class Mail(NamedTuple):
    kind: Literal["ask", "answer"]
    call: Call
    server: Server
    outcome: Applied | None
    sent_at: int
    not_before: int = 0


@dataclass
class Publishing:
    """An operation on its way to the stream, message by message."""

    left: list[Message]
    contended: str | None = None


Observe = Callable[[int, int, Operation, Applied], None]
"""Told of every operation a server has applied: server, place in the order, what, and outcome."""


class Server:
    """One server: its copy of the log, what it publishes, and who waits for an answer."""

    def __init__(self, cluster: Cluster, slot: int, replica: type[Replica]) -> None:
        self.cluster = cluster
        self.slot = slot
        self.replica = replica(slot, cluster.setup)
        self.alive = True
        self.is_new = False
        self.starts = 0
        self.outbox: list[Publishing] = []
        self.waiting: dict[OperationId, Call] = {}
        self.operations = 0
        self.open: tuple[OperationId | None, int] = (None, 0)

    def take(self, call: Call) -> None:
        """A request has come: answered at once by a server that has the log to itself."""
        if not self.cluster.alone:
            self.publish(call)
        elif not self.is_early(call) or not self.answered_early(call):
            self.answer_synced(call)

    @property
    def start_number(self) -> int:
        return 1_000 + self.starts

    def is_early(self, call: Call) -> bool:
        return self.cluster.setup.early and call.is_early and may_be_early(call.operation)

    def answered_early(self, call: Call) -> bool:
        applied = self.replica.apply_early(call.operation, self.cluster.now_ms, self.start_number)
        if applied.refusal is not None:
            return False
        self._answer(call, applied)
        if self.cluster.rng.random() < LANDED_RATE:
            self.replica.sync()
        return True

    def answer_synced(self, call: Call) -> None:
        """With one sync for this and all that was answered before it. One that fails leaves the
        caller without an answer, and what was answered is lost: another start begins."""
        cluster = self.cluster
        may_fail = self.replica.has_unsynced and cluster.step < cluster.setup.fault_steps
        if may_fail and cluster.rng.random() < FAILED_RATE:
            self.replica.crash()
            self.starts += 1
            return
        self.replica.land()
        applied = self.replica.apply(call.operation, cluster.now_ms)
        self.replica.keep_given(self.start_number)
        self.replica.sync()
        self._answer(call, applied)

    def _answer(self, call: Call, applied: Applied) -> None:
        self.cluster.touched = self
        self.operations += 1
        self.cluster.observe(self.slot, self.operations, call.operation, applied)
        self.cluster.answer(self, call, applied)

    def publish(self, call: Call) -> None:
        self.operations += 1
        publisher = self.slot.to_bytes(4, "big") + self.starts.to_bytes(4, "big")
        id = OperationId(publisher, self.operations)
        self.cluster.published[id] = call.operation
        self.outbox.append(Publishing(messages(id, call.operation), contended(call.operation)))
        self.waiting[id] = call

    def follow(self) -> None:
        """Apply one message; a void operation of this server's own is published again."""
        self.cluster.touched = self
        if self.cluster.base.is_needed(self.replica):
            self.cluster.base.bring_up(self.replica, self.cluster.stream)
            return
        last_applied = self.replica.follow(self.cluster.stream[self.replica.followed])
        open_ = open_operation(self.replica.view())
        if open_ != self.open[0]:
            self.open = (open_, self.cluster.step)
        if last_applied is None:
            return
        id, applied = last_applied
        if not applied.is_void:
            operation = self.cluster.published[id]
            self.cluster.observe(self.slot, self.replica.followed, operation, applied)
        call = self.waiting.pop(id, None)
        if call is None:
            return
        if applied.is_void:
            self.publish(call)
        else:
            self.cluster.answer(self, call, applied)

    def crash(self) -> None:
        self.alive = False
        self.outbox.clear()
        self.waiting.clear()
        self.replica.crash()
        self.open = (None, self.cluster.step)

    def lose_folder(self) -> None:
        """What it had is an index of the stream, which is read again from its beginning."""
        self.crash()
        self.replica.empty()
        self.is_new = True

    def start(self) -> None:
        """An index made anew is brought up before anyone is answered from it."""
        while self.is_new and self.replica.followed < len(self.cluster.stream):
            self.follow()
        self.replica.sync()
        self.is_new = False
        self.alive = True
        self.starts += 1

    def has_news(self) -> bool:
        """Whether there is something to publish."""
        id, since = self.open
        if id is not None and self.cluster.step - since > VOID_STEPS:
            self.open = (id, self.cluster.step)
            self.outbox.append(Publishing([void_message(id)]))
        return bool(self.outbox)


class Cluster:
    """All servers, the stream behind them, and the mail between them and their clients."""

    def __init__(
        self, rng: random.Random, setup: LogSetup, server: type[Server], replica: type[Replica]
    ) -> None:
        self.rng, self.setup = rng, setup
        self.alone = setup.servers == 1
        self.lost, self.repeated = setup.lost, setup.repeated
        self.now_ms = setup.started_at_ms
        self.step = 0
        self.agreed = 0
        self.stream: list[Delivered] = []
        self.base = Base()
        self.last_on: dict[str, Lsn] = {}
        self.published: dict[OperationId, Operation] = {}
        self.late: list[Message] = []  # second copies, beyond what the stream itself recognises
        self.mail: list[Mail] = []
        self.observe: Observe = lambda server, place, operation, outcome: None
        self.touched: Server | None = None  # whose copy has changed last
        self.servers = [server(self, slot, replica) for slot in range(setup.servers)]

    def close(self) -> None:
        for server in self.servers:
            server.replica.close()

    def up(self) -> list[Server]:
        return [server for server in self.servers if server.alive]

    def any_up(self) -> Server:
        """A server to turn to; a client finds out by itself if it goes down later."""
        return self.rng.choice(self.up() or self.servers)

    def agree(self, operation: Operation) -> None:
        """Apply an operation everywhere at once, as if nothing could go wrong.

        Who observes is told of it under the place it has in the stream, where one that lost its
        folder finds it again; a server alone has it before all operations that are called.
        """
        self.agreed -= 1
        if not self.alone:
            id = OperationId(b"agreed: ", len(self.stream) + 1)
            self.published[id] = operation
            for message in messages(id, operation):
                self.put(message)
        for server in self.servers:
            if self.alone:
                applied = server.replica.apply(operation, self.now_ms)
                self.observe(server.slot, self.agreed, operation, applied)
            while server.replica.followed < len(self.stream):
                last_applied = server.replica.follow(self.stream[server.replica.followed])
                if last_applied is not None:
                    self.observe(server.slot, server.replica.followed, operation, last_applied[1])
            server.replica.sync()

    # Between clients and servers.

    def call(self, owner: Client, operation: Operation, *, is_early: bool = False) -> Call:
        call = Call(owner, operation, self.step, self.step, is_early=is_early)
        owner.calls.append(call)
        self._ask(call)
        return call

    def _ask(self, call: Call) -> None:
        call.sent_at = self.step
        call.tries += 1
        self.mail.append(Mail("ask", call, self.any_up(), None, self.step))

    def retry(self, owner: Client) -> None:
        """Send again what has waited too long."""
        for call in owner.calls:
            if self.step - call.sent_at > PATIENCE << min(call.tries, 3):
                self._ask(call)

    def answer(self, server: Server, call: Call, outcome: Applied) -> None:
        self.mail.append(Mail("answer", call, server, outcome, self.step))

    def due(self) -> bool:
        """Whether a message can arrive now; those held back as long as they may are looked at
        again when nothing else is under way."""
        return any(mail.not_before <= self.step for mail in self.mail)

    def deliver(self) -> None:
        """Any message, in any order: lost, or with a copy that is held back for as long as a
        network may."""
        place = self.rng.randrange(len(self.mail))
        mail = self.mail[place]
        if mail.not_before > self.step:
            return
        self.mail[place] = self.mail[-1]
        self.mail.pop()
        if self.step > mail.sent_at + LIFE_STEPS:
            return
        if self.rng.random() < self.repeated:
            later = self.rng.randint(self.step, mail.sent_at + LIFE_STEPS)
            self.mail.append(mail._replace(not_before=later))
        if self.rng.random() < self.lost or not mail.server.alive:
            return
        if mail.kind == "ask":
            mail.server.take(mail.call)
        elif mail.call.outcome is None and mail.call in mail.call.owner.calls:
            mail.call.outcome = mail.outcome
            mail.call.owner.calls.remove(mail.call)
            if mail.call.owner.alive:
                mail.call.owner.answered(mail.call)

    # Between servers and the stream.

    def publish(self, server: Server) -> None:
        """The next message of an operation: it may be lost, and it may come a second time.

        A take-over or marker is put only if its server knows the last one of the same task log.
        """
        chosen = self.rng.choice(server.outbox)
        if self.rng.random() < self.lost:
            return
        subject = chosen.contended
        if subject is not None and self.is_stale(server, subject):
            return
        message = chosen.left.pop(0)
        self.put(message)
        if self.rng.random() < self.repeated:
            self.late.append(message)
        if not chosen.left:
            server.outbox.remove(chosen)

    def is_stale(self, server: Server, subject: str) -> bool:
        return last_on(server.replica.view(), subject) != self.last_on.get(subject, 0)

    def put(self, message: Message) -> None:
        lsn = Lsn(len(self.stream) + 1)
        self.last_on[message.subject] = lsn
        self.stream.append(Delivered(lsn, self.now_ms, message.subject, message.body))

    def behind(self) -> list[Server]:
        return [server for server in self.up() if server.replica.followed < len(self.stream)]
