"""Reading back: what a task's change log says its state was, and what a snapshot holds."""

from __future__ import annotations

from penstock.errors import TryAgain
from penstock.log.classify import Classifier, Committed, Recall, Verdict
from penstock.log.contract import Entry
from penstock.log.facts import Plain, fact_of
from penstock.model.ids import Lsn
from penstock.protocols.port import Port
from penstock.protocols.state import State
from penstock.protocols.wire import Changes, Snapshot, decode


def committed(classifier: Classifier, entry: Entry) -> list[tuple[Lsn, bytes]]:
    """What counts now that this entry is known, in order."""
    fact = fact_of(entry)
    if isinstance(fact, Plain):
        # The log lets no repeat in, and a sender that does not wait need not keep its order.
        fact = Plain(fact.lsn, fact.payload, fact.arrived_at_ms)
    return [] if fact is None else [_given(verdict) for verdict in _kept(classifier.feed(fact))]


def _kept(verdicts: list[Verdict]) -> list[Committed | Recall]:
    return [one for one in verdicts if isinstance(one, Committed | Recall)]


def _given(verdict: Committed | Recall) -> tuple[Lsn, bytes]:
    if isinstance(verdict, Recall) or verdict.payload is None:
        raise TryAgain(
            "more entries wait for a marker than a task remembers; commit more often",
            code="input_too_large",
        )
    return verdict.lsn, verdict.payload


async def replay_changes(port: Port, tag: str, state: State, after: Lsn, until: Lsn) -> int:
    """Apply the committed changes after one place and up to another; how many there were."""
    classifier, applied = Classifier(), 0
    start = after + 1
    while start <= until:
        entries = await port.page(tag, start, until)
        if not entries:
            break
        for entry in entries:
            for _, payload in committed(classifier, entry):
                found = decode(payload)
                assert isinstance(found, Changes)  # nothing else is in a change log
                state.replay(found.changes)
                applied += len(found.changes)
        start = entries[-1].head.lsn + 1
    return applied


async def load_snapshot(port: Port, lsns: list[int], state: State) -> None:
    parts = []
    for lsn in lsns:
        found = decode((await port.entry(Lsn(lsn))).payload)
        assert isinstance(found, Snapshot)
        parts.append(found.part)
    state.restore(b"".join(parts))
