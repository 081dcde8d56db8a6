"""Whether an operation fits into messages is known without making them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from penstock.errors import BadCall
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream.codec import OperationId, message_sizes, messages
from penstock.log.backends.jetstream.message_fit import HEADERS_BYTES, check_fits
from penstock.log.operations import AppendRecord, AppendRows, Draft, Mark, TakeQuery
from penstock.log.reading.recovery import checkpoint_of
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, StreamName, Substream
from penstock.model.marker import FileRef, Marker
from support.log.drafts import files, mark, take

ID = OperationId(b"12345678", 7)
MEGABYTE = 1_000_000
"""About what nats-server takes unless it is told otherwise."""


def test_sizes_are_those_of_the_messages() -> None:
    drafts = tuple(Draft(Substream(n), b"x" * n * 100, 1, n) for n in range(3))
    for operation in (
        AppendRows(StreamName("s"), drafts, "p", 1),
        AppendRows(StreamName("s"), ()),
        AppendRecord(("a", "b"), b"y" * 1_000),
        TakeQuery(QueryId("q"), "r", None),
    ):
        made = [(message.subject, len(message.body)) for message in messages(ID, operation)]
        assert list(message_sizes(ID, operation)) == made


def test_no_payload_is_copied_to_know_its_size() -> None:
    drafts = tuple(Draft(Substream(n), bytes(8 << 20), 1, n) for n in range(3))
    operation = AppendRows(StreamName("s"), drafts)
    tracemalloc.start()
    try:
        sizes = [size for _, size in message_sizes(ID, operation)]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert min(sizes) > 8 << 20


def marker_of(pieces: int) -> Mark:
    """A marker that names a change log and its checksum for each piece of state."""
    paths = (
        f"state/0/{piece}/left-keyWithIndexToValue/1042_{piece:08x}-16d2-4a5e-9d3f-0123456789ab.changelog{checksum}"
        for piece in range(pieces)
        for checksum in ("", ".crc")
    )
    refs = tuple(FileRef(FilePath(path), Lsn(10_000 + n)) for n, path in enumerate(paths))
    return Mark(
        Marker(QueryId("q"), Instance(1), BatchId(1_041), (), commit="e30=", files=refs), None
    )


def test_a_marker_of_five_thousand_pieces_is_refused_with_what_to_do_or_fits() -> None:
    check_fits(ID, marker_of(1_600), MEGABYTE, "nats://a")
    with pytest.raises(BadCall) as refused:
        check_fits(ID, marker_of(5_000), MEGABYTE, "nats://a")
    assert (refused.value.code, refused.value.http_status) == ("entry_too_large", 413)
    for fact in (
        "the marker of batch 1041 of the query 'q', which names 10000 files",
        f"at most {MEGABYTE - HEADERS_BYTES} bytes, which the servers at nats://a take",
        "raise their max_payload, or start the query anew with fewer partitions",
    ):
        assert fact in refused.value.message
    check_fits(ID, marker_of(5_000), 8 * MEGABYTE, "nats://a")


def test_a_log_of_its_own_takes_a_marker_of_five_thousand_pieces(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path / "data")
    log.run(take())
    paths = [file.path for file in marker_of(5_000).marker.files]
    entries: dict[str, int] = {}
    for start in range(0, len(paths), 1_000):
        part = paths[start : start + 1_000]
        entries |= dict(zip(part, log.run(files(*part)), strict=True))
    log.run(mark(files=entries))
    with log.reading() as view:
        whole = checkpoint_of(view, QueryId("q"), None, 10, 1 << 10)
    assert len(whole.markers[0].files) == len(paths)
    assert not whole.more
    log.close()
