"""The state of a simulated replicated log, written down, and messages purged that it replaces."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from penstock.log.backends.jetstream.purge import purges
from penstock.log.backends.jetstream.replay import Delivered, open_operation
from penstock.log.backends.jetstream.state_dump import Refill, begin_refill, chunks, load
from penstock.log.store.refilling import is_whole
from penstock.model.ids import Lsn
from simulation.log.replica import Replica
from simulation.release.setup import Violation

CHUNK_BYTES = 2_000


@dataclass(frozen=True)
class WrittenDown:
    """All tables as they were at `lsn`; `carried` payloads are in messages that are kept."""

    lsn: Lsn
    chunks: tuple[bytes, ...]
    carried: int


@dataclass
class Base:
    """The newest state written down, what may be purged since, and what was."""

    newest: WrittenDown | None = None
    asked: list[tuple[str, Lsn]] = field(default_factory=list)
    purged: set[Lsn] = field(default_factory=set)
    loads: int = 0

    def write_down(self, replica: Replica, stream: list[Delivered]) -> None:
        """As one server has it now; not while an operation is half published."""
        view = replica.view()
        lsn = Lsn(view.next_lsn - 1)
        if open_operation(view) is not None or not self.may_replace(lsn):
            return
        made = list(chunks(view, CHUNK_BYTES))
        self.newest = WrittenDown(lsn, tuple(chunk for chunk, _ in made), sum(n for _, n in made))
        self.asked = list(purges(view, sorted({message.subject for message in stream})))

    def may_replace(self, lsn: Lsn) -> bool:
        """A server that is behind must not put an older state in place of a newer one: what that
        one replaced may be purged."""
        return self.newest is None or self.newest.lsn < lsn

    def purge(self, rng: random.Random, stream: list[Delivered]) -> None:
        """One subject, up to the first entry that was still there."""
        subject, below = self.asked.pop(rng.randrange(len(self.asked)))
        self.purged |= {
            message.lsn for message in stream if message.subject == subject and message.lsn < below
        }

    def is_needed(self, replica: Replica) -> bool:
        """Whether what comes next for this copy is gone."""
        return Lsn(replica.followed + 1) in self.purged

    def bring_up(self, replica: Replica, stream: list[Delivered]) -> None:
        """Take the state over in place of what the copy has, and fill in the payloads."""
        made = self.newest
        if made is None or made.lsn <= replica.followed:
            raise Violation(f"message {replica.followed + 1} is purged, and no state replaces it")
        self.loads += 1
        replica.empty()
        begin_refill(replica.txn, replica.tables, made.carried)
        for chunk in made.chunks:
            load(replica.txn, replica.tables, chunk)
        refill = Refill(made.carried, made.lsn)
        for message in stream[: made.lsn]:
            if message.lsn not in self.purged and refill.left:
                refill.fill(replica.txn, replica.tables, message)
        if not is_whole(replica.view()):
            raise Violation(f"the state written down at {made.lsn} lacks {refill.left} payloads")
        replica.followed = made.lsn
        replica.sync()
