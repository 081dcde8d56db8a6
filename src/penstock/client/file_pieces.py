"""Cuts a file or a pipe into pieces small enough for one append each, rows kept whole."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from penstock.client.rows import ipc_bytes
from penstock.client.wire import ARROW, CSV, JSON_LINES
from penstock.errors import BadCall

PIECE_BYTES = 4 << 20
PIECE_ROWS = 50_000
FORMATS = {"arrow": ARROW, "jsonl": JSON_LINES, "csv": CSV}
_SUFFIXES = {".arrow": "arrow", ".arrows": "arrow", ".ipc": "arrow", ".feather": "arrow"} | {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
}


class Piece(NamedTuple):
    body: bytes
    content_type: str


def format_of(path: str, given: str | None) -> str:
    """The format given, else the one the file's name ends with; a pipe must be told."""
    kind = given or _SUFFIXES.get(Path(path).suffix.lower())
    if kind is None:
        raise BadCall(
            f"the format of {'standard input' if path == '-' else path} is not in its name; "
            f"give --format {', '.join(FORMATS)}",
            code="bad_request",
        )
    return kind


def pieces(source: BufferedIOBase, kind: str) -> Iterator[Piece]:
    """The pieces of `source`, in order; each becomes one commit."""
    if kind == "arrow":
        yield from _arrow(source)
    elif kind == "csv":
        yield from _csv(source)
    else:
        yield from _json_lines(source)


def _json_lines(source: BufferedIOBase) -> Iterator[Piece]:
    rest = b""
    # read1 returns what a pipe holds by now, so that rows do not wait for a piece to fill.
    while chunk := source.read1(PIECE_BYTES):
        whole, end, tail = chunk.rpartition(b"\n")
        if end:
            yield Piece(rest + whole + end, JSON_LINES)
            rest = tail
        else:
            rest += chunk
    if rest.strip():
        yield Piece(rest, JSON_LINES)


def _csv(source: BufferedIOBase) -> Iterator[Piece]:
    header = source.readline()
    gathered: list[bytes] = []
    size = 0
    within = False
    for line in source:
        # A quoted field may hold line ends: a row ends where the quotes so far are even.
        within ^= line.count(b'"') % 2 == 1
        gathered.append(line)
        size += len(line)
        if size >= PIECE_BYTES and not within:
            yield Piece(header + b"".join(gathered), CSV)
            gathered, size = [], 0
    if gathered:
        yield Piece(header + b"".join(gathered), CSV)


def _arrow(source: BufferedIOBase) -> Iterator[Piece]:
    data = source.read()
    try:
        # A file has the magic word at both ends; a stream has none.
        opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
        table = opened(pa.BufferReader(data)).read_all()
    except pa.ArrowException as error:
        raise BadCall(f"this is not Arrow IPC: {error}", code="bad_rows") from error
    rows = max(1, min(PIECE_ROWS, PIECE_BYTES * max(table.num_rows, 1) // max(table.nbytes, 1)))
    for start in range(0, table.num_rows, rows):
        yield Piece(ipc_bytes(table.slice(start, rows)), ARROW)
