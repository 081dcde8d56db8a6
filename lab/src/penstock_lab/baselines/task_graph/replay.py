"""Reading back from the log: which appended rows count, a task's change log, its snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import Bug
from penstock.log.contract import Entry
from penstock.log.raw.classify import Bounds, Classifier, Committed, Recall, Verdict
from penstock.log.raw.entry_facts import Fact, fact_of
from penstock.model.ids import Lsn
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import Changes, Snapshot, decode
from penstock_lab.baselines.task_graph.state import State

Kept = Committed | Recall


def settled(classifier: Classifier, entry: Entry) -> list[Kept]:
    """Entries known to count now that this one is known, in order; payloads may be missing."""
    fact = fact_of(entry)
    return [] if fact is None else _kept(classifier.feed(fact))


def _kept(verdicts: list[Verdict]) -> list[Kept]:
    return [verdict for verdict in verdicts if isinstance(verdict, Committed | Recall)]


def is_whole(kept: Sequence[Kept]) -> bool:
    """Whether nothing has to be read again: the classifier had room for all of it."""
    return all(isinstance(item, Committed) and item.payload is not None for item in kept)


def payloads(kept: Sequence[Kept]) -> list[bytes]:
    """The payloads for a reader that holds everything; any other asks `read_again`."""
    if not is_whole(kept):
        raise Bug("a reader that holds everything was asked to read again; report this", code="bug")
    return [
        item.payload for item in kept if isinstance(item, Committed) and item.payload is not None
    ]


async def read_again(
    log: LogClient, tag: str, classifier: Classifier, kept: Sequence[Kept]
) -> list[bytes]:
    """The payloads, with what the classifier had no room for read from the log once more.

    Feed it nothing until this has returned.
    """
    given: list[bytes] = []
    for item in kept:
        if isinstance(item, Recall):
            facts = await _facts(log, tag, item)
            again = _kept(classifier.recall(item, facts))
            given += await read_again(log, tag, classifier, again)
        elif item.payload is None:
            given.append((await log.entry(item.lsn)).payload)
        else:
            given.append(item.payload)
    return given


async def _facts(log: LogClient, tag: str, asked: Recall) -> list[Fact]:
    """The facts under the tag from where the producer was set aside up to its marker."""
    facts: list[Fact] = []
    start, until = int(asked.first), asked.marks.lsn - 1
    while start <= until:
        entries = await log.page(tag, start, until)
        if not entries:
            break
        # Others' payloads have been handed on, or wait elsewhere.
        own = (entry for entry in entries if entry.head.producer == asked.marks.producer)
        facts += [fact for fact in map(fact_of, own) if fact is not None]
        start = entries[-1].head.lsn + 1
    return facts


async def replay_changes(
    log: LogClient, tag: str, state: State, after: Lsn, until: Lsn, bounds: Bounds | None = None
) -> int:
    """Apply the committed changes after one place and up to another; how many there were."""
    classifier, applied = Classifier(bounds), 0
    start = after + 1
    while start <= until:
        entries = await log.page(tag, start, until)
        if not entries:
            break
        for entry in entries:
            counts = settled(classifier, entry)
            for payload in await read_again(log, tag, classifier, counts):
                logged = decode(payload)
                assert isinstance(logged, Changes)  # nothing else is in a change log
                state.replay(logged.changes)
                applied += len(logged.changes)
        start = entries[-1].head.lsn + 1
    return applied


async def load_snapshot(log: LogClient, lsns: list[int], state: State) -> None:
    parts = []
    for lsn in lsns:
        snapshot = decode((await log.entry(Lsn(lsn))).payload)
        assert isinstance(snapshot, Snapshot)
        parts.append(snapshot.part)
    state.restore(b"".join(parts))
