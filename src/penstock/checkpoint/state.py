"""State stores out of the log, for `penstock drain`: what a location has lost of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from penstock.checkpoint.location import Location
from penstock.client import Client, StoredState
from penstock.errors import Damaged
from penstock.model.ids import snapshot_version
from penstock.model.marker import SnapshotFile


def put_state(client: Client, query: str, location: Location) -> str | None:
    """Write what the location lacks; says what was done, None if it lacks nothing.

    A snapshot's own file comes after those it names, and change logs come last, so that whatever
    interrupts this leaves nothing that names a file which is not there.
    """
    written = sum(_put_store(client, query, location, each) for each in _stores(client, query))
    if not written:
        return None
    return f"the state lacked {written} files, which were written from the log"


def _stores(client: Client, query: str) -> Iterator[StoredState]:
    after: str | None = None
    more = True
    while more:
        page = client.state(query, after=after)
        yield from page.stores
        after = page.stores[-1].folder if page.stores else None
        more = page.more


def _put_store(client: Client, query: str, location: Location, store: StoredState) -> int:
    written = 0
    for file in sorted(store.snapshot, key=lambda each: snapshot_version(each.path) is not None):
        if not location.has(file.path):
            # A checksum that is left may be of other bytes: packed again, the same files differ.
            (location.folder / f"{file.path}.crc").unlink(missing_ok=True)
            content = _content(client, query, file)
            written += location.put(file.path, content, f"the entries {file.entries}")
    for change in store.changes:
        if not location.has(change.path):
            content = client.file(query, change.entry)
            written += location.put(change.path, content, f"entry {change.entry}")
    return written


def _content(client: Client, query: str, file: SnapshotFile) -> bytes:
    content = b"".join(client.file(query, entry) for entry in file.entries)
    if (len(content), zlib.crc32(content)) != (file.file_bytes, file.crc32):
        raise Damaged(
            f"{file.path} of the query {query} is damaged in the log: the entries {file.entries} "
            f"have {len(content)} bytes with the checksum {zlib.crc32(content)}, and it was "
            f"written with {file.file_bytes} and {file.crc32}; restore the log from a backup",
            code="damaged",
        )
    return content
