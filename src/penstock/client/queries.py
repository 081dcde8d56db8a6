"""The client's calls about queries: who may mark, what was marked, and their checkpoint files."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.client.wire import Wire
from penstock.model.admission_answers import QueryAdmission, QueryDeadline
from penstock.model.answers import (
    BatchAdmission,
    Checkpoint,
    EntryPlace,
    EntryPlaces,
    StateInLog,
)
from penstock.model.ids import Lsn
from penstock.model.query_answers import (
    MarkerLine,
    MarkerList,
    QueryDescription,
    QueryList,
    TakenOver,
)
from penstock.model.requests import BatchAdmissionBody, DeadlineBody, InstanceBody, MarkerBody

BYTES = "application/octet-stream"


class QueryCalls:
    """The part of a client that speaks of queries."""

    _wire: Wire

    def queries(self) -> list[QueryDescription]:
        return list(self._wire.request("GET", ("queries",)).as_kind(QueryList).queries)

    def query(self, query: str) -> QueryDescription:
        """A query's current instance and its last marker."""
        return self._wire.request("GET", ("queries", query)).as_kind(QueryDescription)

    def take_over(self, query: str, run: str, name: str | None = None) -> TakenOver:
        """Become the instance of the query that may write: every older one is fenced from here on.

        The same `run` again gets the same answer; a query that was never seen is made.
        """
        body = msgspec.json.encode(InstanceBody(run, name))
        got = self._wire.request("POST", ("queries", query, "instances"), body=body)
        return got.as_kind(TakenOver)

    def admit_batch(self, question: BatchAdmissionBody) -> BatchAdmission:
        """Ask whether the next batch of a query with a deadline or a policy may begin; held."""
        body = msgspec.json.encode(question)
        got = self._wire.request("POST", ("admission", "batch"), body=body)
        return got.as_kind(BatchAdmission)

    def explain(self, query: str) -> QueryAdmission:
        """Admission of a query, by its id or name: its last decisions and how it has fared."""
        got = self._wire.request("GET", ("queries", query, "admission"))
        return got.as_kind(QueryAdmission)

    def set_deadline(self, query: str, deadline_ms: float | None) -> QueryDeadline:
        """Give a running query, by its id or name, another deadline; None takes it back.

        It is in force from the next decision on, until the server stops.
        """
        body = msgspec.json.encode(DeadlineBody(deadline_ms))
        got = self._wire.request("PUT", ("queries", query, "deadline"), body=body)
        return got.as_kind(QueryDeadline)

    def mark(self, query: str, marker: MarkerBody) -> Lsn:
        """Commit a batch: the marker's place. The same marker again gets the same answer."""
        body = msgspec.json.encode(marker)
        got = self._wire.request("POST", ("queries", query, "markers"), body=body)
        return got.as_kind(EntryPlace).lsn

    def markers(self, query: str, after_batch: int | None = None) -> list[MarkerLine]:
        """Every batch the query has committed after `after_batch`, in order."""
        markers: list[MarkerLine] = []
        while True:
            got = self._wire.request(
                "GET", ("queries", query, "markers"), {"after_batch": after_batch}
            )
            page = got.as_kind(MarkerList).markers
            if not page:
                return markers
            markers += page
            after_batch = page[-1].batch

    def append_files(
        self, query: str, instance: int, batch: int, files: Mapping[str, bytes]
    ) -> list[Lsn]:
        """Append checkpoint files of a batch, all or none: the entries, in the order given.

        Durable when this returns; they count once the marker of the batch names them. A try that
        was repeated may leave a second copy, which nobody names.
        """
        if not files:
            return []
        sent = {
            "instance": instance,
            "batch": batch,
            "paths": ",".join(files),
            "sizes": ",".join(str(len(payload)) for payload in files.values()),
        }
        got = self._wire.request(
            "POST",
            ("queries", query, "files"),
            sent,
            body=b"".join(files.values()),
            headers={"Content-Type": BYTES},
        )
        return list(got.as_kind(EntryPlaces).entries)

    def file(self, query: str, entry: int) -> bytes:
        """The bytes of a checkpoint file, as they were appended."""
        return self._wire.request("GET", ("queries", query, "files", str(entry))).body

    def checkpoint(self, query: str, *, after_batch: int | None = None) -> Checkpoint:
        """Files that bring a location with `after_batch` (or nothing) towards the last marker.

        One page: with `more`, ask again after the batch of its last marker.
        """
        got = self._wire.request(
            "GET", ("queries", query, "checkpoint"), {"after_batch": after_batch}
        )
        return got.as_kind(Checkpoint)

    def state(self, query: str, *, after: str | None = None) -> StateInLog:
        """Files that bring the query's state stores up to its last marker, as far as in the log.

        One page, of the stores whose folders come after `after`: with `more`, ask again after the
        last one. None where the query keeps its snapshots in the checkpoint location alone.
        """
        got = self._wire.request("GET", ("queries", query, "state"), {"after": after})
        return got.as_kind(StateInLog)
