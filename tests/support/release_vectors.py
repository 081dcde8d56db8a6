"""Scripts for the release of a query, which its Python and its Scala form must both follow.

Run this file to write `tests/vectors/release.json` from the Python form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.commit.events import (
    CommitWritten,
    CopyBatch,
    Delete,
    DeleteAsked,
    Done,
    Effect,
    Event,
    Failed,
    OffsetsWritten,
    PieceDurable,
    PieceWritten,
    PutCommit,
    PutMarker,
    PutOffsets,
    WriterLost,
)
from penstock.commit.release import Release

FILE = Path(__file__).parents[1] / "vectors" / "release.json"


def offsets(batch: int) -> Event:
    return OffsetsWritten(batch)


def written(batch: int, piece: str, writer: str = "a", generation: int = 1) -> Event:
    return PieceWritten(batch, piece, writer, generation)


def durable(batch: int, piece: str, writer: str = "a", generation: int = 1) -> Event:
    return PieceDurable(batch, piece, writer, generation)


def commit(batch: int, *required: str) -> Event:
    return CommitWritten(batch, frozenset(required))


def done(effect: Effect) -> Event:
    return Done(effect)


def in_location(batch: int) -> list[Event]:
    """A batch with one piece, from its offsets to its commit in the location."""
    piece = f"0/{batch}"
    return [
        offsets(batch),
        done(PutOffsets(batch)),
        written(batch, piece),
        durable(batch, piece),
        commit(batch, piece),
        done(PutCommit(batch)),
    ]


def in_log(batch: int) -> list[Event]:
    """A batch with one piece, from its offsets to its marker; not copied yet."""
    return [*in_location(batch)[:-1], done(PutMarker(batch))]


def to_script(
    name: str, first: int, recorded: bool, with_log: bool, events: Sequence[Event],
    behind: int = 8, offsets_in_marker: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """What the release answers to each event, and how it stands after it."""
    release = Release(
        first,
        recorded=recorded,
        with_log=with_log,
        behind=behind,
        offsets_in_marker=offsets_in_marker,
    )
    return {
        "name": name,
        "first": first,
        "recorded": recorded,
        "with_log": with_log,
        "behind": behind,
        "offsets_in_marker": offsets_in_marker,
        "steps": [to_step(release, event) for event in events],
    }


def to_step(release: Release, event: Event) -> dict[str, Any]:
    effects = release.on(event)
    marked = [effect.batch for effect in effects if isinstance(effect, PutMarker)]
    writes = release.durable_writes(marked[0]) if marked else {}
    return {
        "event": plain(event),
        "effects": [plain(effect) for effect in effects],
        "released": release.released,
        "committed": release.committed,
        "copied": release.copied,
        "stopped": release.stopped,
        "idle": release.is_idle(),
        "awaited": release.awaited(),
        "computes": computes(release),
        "places": last(release, lambda batch: release.may_make_durable(batch, is_large=True)),
        "appends": release.may_make_durable(release.released + 1, is_large=False),
        "shows": last(release, lambda batch: release.may_show_snapshot(batch, is_required=False)),
        "shows_required": last(
            release, lambda batch: release.may_show_snapshot(batch, is_required=True)
        ),
        "writes": [
            {"piece": piece, "writer": writer, "generation": generation}
            for piece, (writer, generation) in sorted(writes.items())
        ],
    }


def computes(release: Release) -> int:
    """The last batch that may compute."""
    return last(release, release.may_compute)


def last(release: Release, may: Callable[[int], bool]) -> int:
    """The last batch for which it holds."""
    batch = release.copied
    while may(batch + 1):
        batch += 1
    return batch


def plain(value: Event | Effect) -> dict[str, Any]:
    builtins: dict[str, Any] = msgspec.to_builtins(value, order="deterministic")
    return builtins


def without_log() -> list[dict[str, Any]]:
    def to(name: str, *events: Event, first: int = 0, recorded: bool = False) -> dict[str, Any]:
        return to_script(name, first, recorded, False, events)

    start = [offsets(0), done(PutOffsets(0)), written(0, "0/0"), written(0, "1/0", "b")]
    return [
        to("two batches one after the other", *in_location(0), *in_location(1)),
        to(
            "the next batch computes and is held",
            *(*in_location(0)[:-1], offsets(1), written(1, "0/1"), commit(1, "0/1")),
            *(done(PutCommit(0)), done(PutOffsets(1)), durable(1, "0/1"), done(PutCommit(1))),
        ),
        to(
            "every piece is waited for",
            *(*start, commit(0, "0/0", "1/0"), durable(0, "0/0"), durable(0, "1/0", "b")),
        ),
        to(
            "acks may come before the commit",
            *(*start, durable(0, "1/0", "b"), durable(0, "0/0"), commit(0, "0/0", "1/0")),
        ),
        to("a batch without state", offsets(0), done(PutOffsets(0)), commit(0), done(PutCommit(0))),
        to(
            "a superseded write does not count",
            *(*start[:3], written(0, "0/0", generation=2), commit(0, "0/0")),
            *(durable(0, "0/0"), durable(0, "0/0", generation=2)),
        ),
        to(
            "acks told twice and out of order",
            *(*start[:2], durable(0, "0/0", generation=2), written(0, "0/0", generation=2)),
            *(written(0, "0/0"), durable(0, "0/0"), commit(0, "0/0"), written(0, "0/0")),
        ),
        to(
            "a second writer of a piece is waited for",
            *(*start[:3], durable(0, "0/0"), written(0, "0/0", "b"), commit(0, "0/0")),
            durable(0, "0/0", "b"),
        ),
        to(
            "a losing attempt with a name of its own is not waited for",
            *(*start, commit(0, "0/0"), durable(0, "0/0"), done(PutCommit(0))),
            *(durable(0, "1/0", "b"), written(0, "1/0", "b", 2)),
        ),
        to("a writer lost with a piece", *start, commit(0, "0/0", "1/0"), WriterLost("b")),
        to("a writer lost before the commit", *start, WriterLost("b"), commit(0, "0/0", "1/0")),
        to(
            "a lost piece written again elsewhere",
            *(*start, WriterLost("b"), written(0, "1/0", "c"), commit(0, "0/0", "1/0")),
            *(durable(0, "1/0", "c"), durable(0, "0/0")),
        ),
        to(
            "a lost writer whose pieces are durable",
            *(*start, durable(0, "1/0", "b"), WriterLost("b"), durable(0, "0/0")),
            *(commit(0, "0/0", "1/0"), done(PutCommit(0))),
        ),
        to(
            "an ack of a lost writer that comes late",
            *(*start, WriterLost("b"), durable(0, "1/0", "b"), durable(0, "0/0")),
            commit(0, "0/0", "1/0"),
        ),
        to(
            "word of a write that its writer took along",
            *(*start[:3], WriterLost("b"), written(0, "1/0", "b"), commit(0, "0/0", "1/0")),
        ),
        to(
            "a piece nobody was told of, and a writer lost",
            *(*start[:3], WriterLost("b"), durable(0, "0/0"), commit(0, "0/0", "1/0")),
        ),
        to(
            "a piece nobody was told of, and all writers alive",
            *(*start[:3], durable(0, "0/0"), commit(0, "0/0", "1/0"), durable(0, "1/0", "b")),
        ),
        to(
            "a writer lost while the commit is on its way",
            *(*start[:3], commit(0, "0/0"), durable(0, "0/0"), written(0, "0/0", generation=2)),
            *(WriterLost("a"), done(PutCommit(0))),
        ),
        to(
            "recorded offsets are not asked for",
            *(written(4, "0/4"), commit(4, "0/4"), durable(4, "0/4"), done(PutCommit(4))),
            *(offsets(5), done(PutOffsets(5))),
            first=4,
            recorded=True,
        ),
        to(
            "a delete waits for what was held before it",
            *(*in_location(0), *in_location(1)[:-1], offsets(2), DeleteAsked("offsets/0")),
            *(DeleteAsked("commits/0"), done(PutCommit(1)), done(Delete("offsets/0"))),
            *(done(Delete("commits/0")), DeleteAsked("offsets/1")),
        ),
        to(
            "a refused create stops the query",
            *(offsets(3), Failed(PutOffsets(3), "offsets/3 is there"), written(3, "0/3")),
            *(commit(3, "0/3"), done(PutOffsets(3))),
            first=3,
        ),
        to(
            "an answer given twice is taken once",
            *(*in_location(0), offsets(1), done(PutOffsets(1)), done(PutOffsets(0))),
            *(done(PutCommit(0)), commit(1), done(PutCommit(1)), done(PutOffsets(1))),
        ),
    ]


def with_log() -> list[dict[str, Any]]:
    def to(name: str, *events: Event, first: int = 0, behind: int = 8) -> dict[str, Any]:
        return to_script(name, first, False, True, events, behind)

    return [
        to("marked, then copied", *in_log(0), done(CopyBatch(0)), *in_log(1), done(CopyBatch(1))),
        to(
            "the copy falls behind as far as it may",
            *(*in_log(0), *in_log(1), *in_log(2), done(CopyBatch(0)), done(CopyBatch(1))),
            behind=1,
        ),
        to(
            "a delete waits for the copy",
            *(*in_log(0), *in_log(1), DeleteAsked("offsets/0"), *in_log(2), done(CopyBatch(0))),
            *(done(CopyBatch(1)), done(Delete("offsets/0")), done(CopyBatch(2))),
        ),
        to(
            "pieces are durable before the offsets",
            *(offsets(0), written(0, "0/0"), durable(0, "0/0"), commit(0, "0/0")),
            *(done(PutOffsets(0)), done(PutMarker(0))),
        ),
        to(
            "the marker names the newest write, of the first writer by name",
            *(offsets(0), done(PutOffsets(0)), written(0, "0/0", "b"), written(0, "0/0", "a")),
            *(durable(0, "0/0", "a"), durable(0, "0/0", "b", 2), durable(0, "1/0", "c", 3)),
            commit(0, "0/0", "1/0"),
        ),
        to(
            "a fenced marker stops the query",
            *(*in_log(0)[:-1], Failed(PutMarker(0), "instance 1 was taken over by 2")),
            done(PutMarker(0)),
        ),
    ]


def with_offsets_in_marker() -> list[dict[str, Any]]:
    """Offsets that go with the marker, and some that state waits for."""

    def to(name: str, *events: Event, first: int = 0, recorded: bool = False) -> dict[str, Any]:
        return to_script(name, first, recorded, True, events, offsets_in_marker=True)

    return [
        to(
            "offsets wait for the marker",
            *(offsets(0), written(0, "0/0"), durable(0, "0/0"), commit(0, "0/0")),
            *(offsets(1), done(PutMarker(0)), commit(1), done(PutMarker(1)), done(CopyBatch(0))),
        ),
        to(
            "offsets go ahead where state is not durable at the end of the batch",
            *(offsets(0), written(0, "0/0"), commit(0, "0/0"), durable(0, "0/0")),
            *(done(PutOffsets(0)), done(PutMarker(0)), offsets(1), commit(1)),
        ),
        to(
            "offsets that are recorded do not go with the marker",
            *(written(4, "0/4"), durable(4, "0/4"), commit(4, "0/4"), done(PutMarker(4))),
            *(offsets(5), commit(5), done(PutMarker(5))),
            first=4,
            recorded=True,
        ),
    ]


class Chance:
    """Events that may come in any order, for a batch or two at a time."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.asked: list[Effect] = []
        self.with_log = bool(seed % 2)
        self.release = Release(
            0,
            recorded=False,
            with_log=self.with_log,
            behind=2,
            offsets_in_marker=is_in_marker(seed),
        )
        self.batch = 0
        self.is_cut = False

    def events(self, count: int) -> list[Event]:
        drawn: list[Event] = []
        while len(drawn) < count and self.release.stopped is None:
            drawn.append(self.draw())
            self.asked += self.release.on(drawn[-1])
        return drawn

    def draw(self) -> Event:
        kind = self.rng.random()
        if self.asked and kind < 0.35:
            place = self.rng.randrange(len(self.asked))
            keep = self.rng.random() < 0.1
            effect = self.asked[place] if keep else self.asked.pop(place)
            return done(effect) if self.rng.random() < 0.98 else Failed(effect, "no space left")
        if kind < 0.75:
            of = self.rng.randint(self.release.committed + 1, max(self.batch, 0))
            piece = f"{self.rng.randrange(2)}/{of}"
            draw, newest = (written, 1) if self.rng.random() < 0.3 else (durable, 2)
            generation = newest if self.rng.random() < 0.8 else 3 - newest
            return draw(of, piece, self.rng.choice("aaaabc"), generation)
        if kind < 0.76:
            return WriterLost(self.rng.choice("bc"))
        if kind < 0.82:
            return DeleteAsked(f"offsets/{max(self.batch - 2, 0)}")
        if not self.is_cut:
            self.is_cut = True
            return offsets(self.batch)
        if not self.release.may_compute(self.batch):
            return DeleteAsked(f"commits/{max(self.batch - 2, 0)}")
        self.is_cut = False
        self.batch += 1
        return commit(self.batch - 1, f"0/{self.batch - 1}", f"1/{self.batch - 1}")


def by_chance() -> list[dict[str, Any]]:
    return [
        to_script(
            f"by chance, {seed}", 0, False, bool(seed % 2), Chance(seed).events(60), behind=2,
            offsets_in_marker=is_in_marker(seed),
        )
        for seed in range(16)
    ]  # fmt: skip


def is_in_marker(seed: int) -> bool:
    """Whether offsets go with markers, in half of what happens by chance with a log."""
    return seed % 4 == 3


def scripts() -> list[dict[str, Any]]:
    return [*without_log(), *with_log(), *with_offsets_in_marker(), *by_chance()]


def main() -> None:
    lines = ",\n".join(json.dumps(script) for script in scripts())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
