"""What the coordinator knows of each query's newest transaction, made again from its records."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from penstock.errors import BadCall
from penstock.model.ids import BEFORE_ALL, Lsn

TAG = "transactions"
"""Of every record of the coordinator."""

Substream = tuple[str, int]


class Step(msgspec.Struct, frozen=True):
    """One durable step. `marker` is what the query asked to be committed."""

    what: Literal["register", "prepare", "done"]
    query: str
    instance: int
    batch: int
    substreams: tuple[Substream, ...] = ()
    marker: dict[str, Any] | None = None


class Transaction(msgspec.Struct):
    """One batch of one query."""

    instance: int
    batch: int
    state: Literal["open", "prepared", "done"] = "open"
    substreams: set[Substream] = set()
    marker: dict[str, Any] | None = None
    since: Lsn = BEFORE_ALL
    """The steps from this place on say all of this."""


class Book:
    """The newest transaction of every query. A step counts once it is durable and noted."""

    def __init__(self) -> None:
        self._newest: dict[str, Transaction] = {}

    def newest(self, query: str) -> Transaction | None:
        return self._newest.get(query)

    def missing(
        self, query: str, instance: int, batch: int, substreams: set[Substream]
    ) -> set[Substream]:
        """Which of the substreams are not registered yet for this batch."""
        there = self._newest.get(query)
        if there is None or (there.instance, there.batch) != (instance, batch):
            return substreams
        return substreams - there.substreams

    def is_prepared(self, query: str, instance: int, batch: int) -> bool:
        there = self._newest.get(query)
        return (
            there is not None
            and (there.instance, there.batch) == (instance, batch)
            and there.state != "open"
        )

    def note(self, step: Step, lsn: Lsn) -> None:
        there = self._newest.get(step.query)
        if there is None or (there.instance, there.batch) != (step.instance, step.batch):
            if _is_late(step, there):
                return
            there = Transaction(step.instance, step.batch, substreams=set(), since=lsn)
            self._newest[step.query] = there
        if there.state == "done":
            return
        says_all = there.substreams <= set(step.substreams)
        there.substreams.update(step.substreams)
        match step.what:
            case "register":
                if says_all and there.state == "open":
                    there.since = lsn
            case "prepare":
                if says_all:
                    there.since = lsn
                there.state, there.marker = "prepared", step.marker
            case "done":
                there.state = "done"

    def unfinished(self) -> list[str]:
        """Queries whose transaction is prepared: it is committed, whatever happens."""
        return [query for query, one in self._newest.items() if one.state == "prepared"]

    def needed(self) -> list[Lsn]:
        """Where the steps begin that a recovery needs. None of what is done: if it is asked for
        again, the log server answers that it is marked."""
        return [one.since for one in self._newest.values() if one.state != "done"]

    def said_before(self, place: Lsn) -> list[str]:
        """Queries with a transaction that is not done, of which nothing after that place says
        all."""
        return [
            query
            for query, one in self._newest.items()
            if one.state != "done" and one.since < place
        ]

    def anew(self, query: str) -> Step:
        """One step that says all of what is not done."""
        one = self._newest[query]
        what: Literal["register", "prepare"] = "register" if one.state == "open" else "prepare"
        substreams = tuple(sorted(one.substreams))
        return Step(what, query, one.instance, one.batch, substreams, one.marker)


def _is_late(step: Step, newest: Transaction | None) -> bool:
    """Whether a step that is not of the newest transaction is of one before it: a coordinator that
    was killed may have had it on its way. An end begins nothing, and instances and batches count
    up; only a query that was forgotten counts instances from one again, with nothing of it
    prepared."""
    if step.what == "done" or newest is None:
        return step.what == "done"
    is_before = (step.instance, step.batch) < (newest.instance, newest.batch)
    return is_before and (newest.state == "prepared" or step.instance == newest.instance)


def substreams_of(told: object) -> set[Substream]:
    """The substreams a request names; `bad_request` if it does not."""
    try:
        return set(msgspec.convert(told, list[Substream]))
    except msgspec.ValidationError as error:
        raise BadCall(f"the substreams are not pairs: {error}", code="bad_request") from None
