"""Reading back: what counts of what was appended, what a task's change log says its state was, and
what a snapshot holds."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import Bug
from penstock.log.contract import Entry
from penstock.log.raw.classify import Bounds, Classifier, Committed, Recall, Verdict
from penstock.log.raw.entry_facts import Fact, fact_of
from penstock.model.ids import Lsn
from penstock_lab.baselines.task_graph.log_client import Port
from penstock_lab.baselines.task_graph.messages import Changes, Snapshot, decode
from penstock_lab.baselines.task_graph.state import State

Kept = Committed | Recall


def settled(classifier: Classifier, entry: Entry) -> list[Kept]:
    """What is known to count now that this entry is known, in order; payloads may be missing."""
    fact = fact_of(entry)
    return [] if fact is None else _kept(classifier.feed(fact))


def _kept(verdicts: list[Verdict]) -> list[Kept]:
    return [one for one in verdicts if isinstance(one, Committed | Recall)]


def is_whole(found: Sequence[Kept]) -> bool:
    """Whether nothing has to be read again: the classifier had room for all of it."""
    return all(isinstance(one, Committed) and one.payload is not None for one in found)


def payloads(found: Sequence[Kept]) -> list[bytes]:
    """Of a reader that holds everything; one that does not asks `read_again`."""
    if not is_whole(found):
        raise Bug("a reader that holds everything was asked to read again; report this", code="bug")
    return [one.payload for one in found if isinstance(one, Committed) and one.payload is not None]


async def read_again(
    port: Port, tag: str, classifier: Classifier, found: Sequence[Kept]
) -> list[bytes]:
    """The payloads, with what the classifier had no room for read from the log once more.

    Feed it nothing until this has returned.
    """
    given: list[bytes] = []
    for one in found:
        if isinstance(one, Recall):
            facts = await _facts(port, tag, one)
            again = _kept(classifier.recall(one, facts))
            given += await read_again(port, tag, classifier, again)
        elif one.payload is None:
            given.append((await port.entry(one.lsn)).payload)
        else:
            given.append(one.payload)
    return given


async def _facts(port: Port, tag: str, asked: Recall) -> list[Fact]:
    """What is under the tag from where the producer was set aside up to its marker."""
    found: list[Fact] = []
    start, until = int(asked.first), asked.marks.lsn - 1
    while start <= until:
        entries = await port.page(tag, start, until)
        if not entries:
            break
        # Others' payloads have been handed on, or wait elsewhere.
        own = (entry for entry in entries if entry.head.producer == asked.marks.producer)
        found += [fact for fact in map(fact_of, own) if fact is not None]
        start = entries[-1].head.lsn + 1
    return found


async def replay_changes(
    port: Port, tag: str, state: State, after: Lsn, until: Lsn, bounds: Bounds | None = None
) -> int:
    """Apply the committed changes after one place and up to another; how many there were."""
    classifier, applied = Classifier(bounds), 0
    start = after + 1
    while start <= until:
        entries = await port.page(tag, start, until)
        if not entries:
            break
        for entry in entries:
            counts = settled(classifier, entry)
            for payload in await read_again(port, tag, classifier, counts):
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
