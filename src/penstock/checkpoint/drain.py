"""A drain copies a query's checkpoint out of the log, so that Spark alone can go on.

The order, and why:

1. find the query's id in the location, and the query in the log: a wrong server is told at once;
2. take the query over: from here on a run that is still alive can append nothing, so the last
   marker stays the last;
3. for every marked batch above the location's last `commits/N`, in order: `offsets/N`, the state's
   files, `commits/N`. Whatever interrupts this, the location is one that Spark could have left;
4. the files of state that the location has lost and whose snapshots are in the log;
5. the recorded offsets of the first batch without a marker, so that it is run with these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import msgspec

from penstock.checkpoint.location import METADATA, Location
from penstock.checkpoint.state import put_state
from penstock.client import Client, MarkedBatch
from penstock.errors import BadCall, Damaged, PenstockError
from penstock.model.ids import offsets_path
from penstock.model.marker import FileRef


@dataclass(frozen=True)
class Batch:
    """Files of one batch that were written, and how many the location had already."""

    batch: int
    written: tuple[str, ...]
    kept: int
    written_bytes: int

    def __str__(self) -> str:
        known = f"; {self.kept} there already" if self.kept else ""
        return f"batch {self.batch}: wrote {', '.join(self.written) or 'nothing'}{known}"


def drain(location: Location, given: str | None, client: Client) -> Iterator[str]:
    """Drain a query into its location; each step, once done, is yielded as a sentence."""
    query = identify(location, given, client)
    taken = client.take_over(query, f"drain-{uuid4()}")
    yield f"query {query}: taken over as instance {taken.instance}"
    copied = 0
    for batch in batches(client, query, location):
        yield str(batch)
        copied += batch.written_bytes
    last = location.last_commit()
    marker = taken.marker
    yield _outcome(location, last, None if marker is None else marker.batch, copied)
    for sentence in (
        put_state(client, query, location),
        put_offsets(client, query, location, last),
    ):
        if sentence is not None:
            yield sentence


def _outcome(location: Location, last: int | None, marked: int | None, copied_bytes: int) -> str:
    if last is None:
        return f"{location.folder} has no committed batch, and neither has the log"
    if marked is None or marked < last:
        in_log = "none" if marked is None else f"batch {marked}"
        return f"{location.folder} is ahead of the log: it has batch {last}, marked is {in_log}"
    return f"{location.folder} has every batch up to {last}; copied {copied_bytes} bytes"


def identify(location: Location, given: str | None, client: Client) -> str:
    """The query's id, known to the location or given, and known to the server."""
    written = location.query_id()
    if written is None and given is None:
        raise BadCall(
            f"{location.folder} has no {METADATA} file, so the query is unknown; give the "
            "checkpoint location of a streaming query, or its id with --query",
            code="bad_request",
        )
    if written is not None and given is not None and written != given:
        raise BadCall(
            f"{location.folder} belongs to the query {written}, not to {given}; leave --query out, "
            "or give the other location",
            code="bad_request",
        )
    query_id = written or given or ""
    try:
        client.query(query_id)
    except BadCall as error:
        if error.code != "unknown_query":
            raise
        raise BadCall(
            f"the log at {client.url} has no query {query_id}; give the server it ran with",
            code=error.code,
        ) from error
    if written is None:
        location.put(METADATA, msgspec.json.encode({"id": query_id}), "the id given")
    return query_id


def batches(client: Client, query: str, location: Location) -> Iterator[Batch]:
    """Bring the location up to the last marker, one batch at a time."""
    last = location.last_commit()
    more = True
    while more:
        page = client.checkpoint(query, after_batch=last)
        for marker in page.markers:
            if marker.batch != (0 if last is None else last + 1):
                raise _behind(query, location, marker, last, "the log has no marker between them")
            yield _bring_up(client, query, location, marker)
            last = marker.batch
        more = page.more


def _bring_up(client: Client, query: str, location: Location, marker: MarkedBatch) -> Batch:
    written: list[str] = []
    kept = size = 0
    last = marker.batch - 1 if marker.batch else None
    commit = marker.commit_bytes
    if commit is None:
        raise _behind(query, location, marker, last, "the marker carries no commit file")
    offsets = offsets_path(marker.batch)
    if marker.offsets_bytes is not None:
        if location.put(offsets, marker.offsets_bytes, f"the marker at {marker.lsn}"):
            written.append(offsets)
            size += len(marker.offsets_bytes)
        else:
            kept += 1
    for file in sorted(marker.files, key=_write_order):
        content = _content(client, query, location, marker, file)
        if content is not None and location.put(file.path, content, f"entry {file.entry}"):
            written.append(file.path)
            size += len(content)
        else:
            kept += 1
    if not location.has(offsets):
        raise _behind(query, location, marker, last, f"{offsets} is in neither")
    name = f"commits/{marker.batch}"
    if location.put(name, commit, f"the marker at {marker.lsn}"):
        written.append(name)
        size += len(commit)
    return Batch(marker.batch, tuple(written), kept, size)


def _write_order(file: FileRef) -> int:
    """Rank of a file: offsets first, then state in the marker's order, the commit's own last."""
    return {"offsets": 0, "commits": 2}.get(file.path.partition("/")[0], 1)


def _content(
    client: Client, query: str, location: Location, marker: MarkedBatch, file: FileRef
) -> bytes | None:
    """The bytes of a file; None if only the location still has it."""
    try:
        return client.file(query, file.entry)
    except BadCall as error:
        if location.has(file.path):
            return None
        last = marker.batch - 1 if marker.batch else None
        raise _behind(
            query, location, marker, last, f"{file.path} is in neither: {error.message}"
        ) from error


def _behind(
    query: str, location: Location, marker: MarkedBatch, last: int | None, fact: str
) -> PenstockError:
    has = "no committed batch" if last is None else f"committed batches up to {last}"
    return Damaged(
        f"the log has marked batch {marker.batch} of the query {query} (LSN {marker.lsn}), and "
        f"{location.folder} has {has}: {fact}; restore the location that goes with the log",
        code="checkpoint_behind",
    )


def put_offsets(client: Client, query: str, location: Location, last: int | None) -> str | None:
    """Write the offsets of the batch after `last`, if any are recorded; says what was done."""
    recorded = client.checkpoint(query, after_batch=last).offsets
    following = 0 if last is None else last + 1
    if recorded is None or recorded.batch < following:
        return None
    path = offsets_path(recorded.batch)
    if recorded.batch > following:
        raise Damaged(
            f"the log has {path} recorded for the query {query} (LSN {recorded.entry}), and "
            f"{location.folder} would have to have batch {following} first, which is in neither; "
            "restore the location that goes with the log",
            code="checkpoint_behind",
        )
    is_new = location.put(path, client.file(query, recorded.entry), f"entry {recorded.entry}")
    done = "wrote" if is_new else "found there already"
    return f"batch {recorded.batch} was begun: {done} {path}, with which Spark runs it again"
