"""Decide on checkpoint files: appending them, and whether a marker may name them.

A file in the log is bytes under a path. The marker of its batch names the ones that count; a file
that no marker names is garbage, but for the recorded offsets of the first batch not yet marked,
with which that batch is run again.
"""

from __future__ import annotations

import msgspec

from penstock.errors import BadCall
from penstock.log.contract import Entry, Head
from penstock.log.decide.fence import check_instance
from penstock.log.operations import AppendFiles
from penstock.log.plan import Plan
from penstock.log.view import View
from penstock.model.ids import (
    BatchId,
    FilePath,
    files_tag,
    offsets_batch,
    offsets_path,
    snapshot_store,
)
from penstock.model.marker import FileRef, Marker


def decide_files(operation: AppendFiles, view: View) -> Plan:
    """Files of one batch, refused if the query has been taken over meanwhile.

    The last `offsets/<batch>` appended is the one that counts, for as long as the batch has no
    marker: the fence makes it the one of the newest instance too.
    """
    check_instance(view, operation.query, operation.instance)
    for file in operation.files:
        _check_offsets(file.path, operation.batch)
    entries = tuple(
        Entry(
            Head(
                place.lsn,
                "file",
                (files_tag(operation.query),),
                place.at_ms,
                file.checksum,
                len(file.payload),
                producer=operation.query,
                instance=operation.instance,
                seq=operation.batch,
                path=file.path,
            ),
            file.payload,
        )
        for place, file in zip(view.places(len(operation.files)), operation.files, strict=True)
    )
    lsns = tuple(entry.head.lsn for entry in entries)
    recorded = [entry.head.lsn for entry in entries if _holds_offsets(entry.head)]
    record = view.query(operation.query)
    marker = record.marker if record is not None else None
    if not recorded or (marker is not None and marker.batch >= operation.batch):
        return Plan(lsns, entries)
    return Plan(lsns, entries, offsets=(operation.query, operation.batch, recorded[-1]))


def _holds_offsets(head: Head) -> bool:
    return head.path is not None and offsets_batch(head.path) is not None


def _check_offsets(path: FilePath, batch: BatchId) -> None:
    recorded = offsets_batch(path)
    if recorded is not None and recorded != batch:
        raise BadCall(
            f"{path} are the offsets of batch {recorded}, and the request is of batch {batch}; "
            "append each with its own batch",
            code="bad_request",
        )


def check_files(marker: Marker, view: View) -> None:
    """Refuse a marker that names a file twice, or one that is not its own. One that carries its
    offsets names them by that."""
    has_offsets = marker.offsets is not msgspec.UNSET
    seen = {offsets_path(marker.batch)} if has_offsets else set()
    for file in marker.files:
        _check_file(marker, file, view.head(file.entry), repeated=file.path in seen)
        seen.add(file.path)


def _check_file(marker: Marker, file: FileRef, head: Head | None, *, repeated: bool) -> None:
    if repeated:
        fact = "is named twice"
    elif head is None:
        fact = "is not there"
    elif head.kind != "file":
        fact = f"is no file but of the kind {head.kind!r}"
    elif head.path != file.path:
        fact = f"is the file {head.path}"
    elif snapshot_store(file.path) is not None:
        fact = "is part of a snapshot, which is named as one"
    elif (head.producer, head.instance, head.seq) != (marker.query, marker.instance, marker.batch):
        fact = (
            f"is of batch {head.seq} of the query {head.producer!r}, appended by instance "
            f"{head.instance}"
        )
    else:
        return
    raise BadCall(
        f"the entry {file.entry}, named as the file {file.path} of batch {marker.batch} of the "
        f"query {marker.query!r} under instance {marker.instance}, {fact}; name the entries that "
        "were answered to this instance for that batch",
        code="unknown_entries",
        status=409,
    )
