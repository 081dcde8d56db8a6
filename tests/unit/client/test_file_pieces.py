"""A file is cut between rows, never within one, and nothing is lost."""

from __future__ import annotations

import csv
import io
import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.client import file_pieces as feed
from penstock.client.file_pieces import format_of, pieces
from penstock.errors import BadCall


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PIECE_BYTES", 64)


def test_json_lines_are_cut_at_line_ends() -> None:
    text = b"".join(b'{"n": %d, "text": "some text"}\n' % n for n in range(50)) + b'{"n": 50}'
    bodies = [piece.body for piece in pieces(io.BytesIO(text), "jsonl")]
    assert len(bodies) > 10
    assert b"".join(bodies) == text
    assert all(body.endswith(b"\n") for body in bodies[:-1])


def test_a_line_longer_than_a_piece_stays_whole() -> None:
    text = b'{"text": "' + b"x" * 500 + b'"}\n{"text": "y"}\n'
    bodies = [piece.body for piece in pieces(io.BytesIO(text), "jsonl")]
    assert b"".join(bodies) == text
    assert all(body.endswith(b"}\n") for body in bodies)


def test_rows_of_a_pipe_do_not_wait_for_a_full_piece() -> None:
    read_end, write_end = os.pipe()
    seen = threading.Event()
    with os.fdopen(read_end, "rb") as source:
        arriving = pieces(source, "jsonl")
        os.write(write_end, b'{"n": 1}\n')
        assert next(arriving).body == b'{"n": 1}\n'
        seen.set()
        os.close(write_end)
        assert list(arriving) == []
    assert seen.is_set()


def test_csv_is_cut_between_rows_and_each_piece_has_the_header() -> None:
    rows = [[str(n), f'a "quoted"\nline {n}'] for n in range(40)]
    text = io.StringIO()
    csv.writer(text).writerows([["n", "text"], *rows])
    bodies = [piece.body for piece in pieces(io.BytesIO(text.getvalue().encode()), "csv")]
    assert len(bodies) > 5
    parsed = [list(csv.reader(io.StringIO(body.decode(), newline=""))) for body in bodies]
    assert all(part[0] == ["n", "text"] for part in parsed)
    assert [row for part in parsed for row in part[1:]] == rows


@pytest.mark.parametrize("opener", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_files_and_arrow_streams_are_both_read(opener: object) -> None:
    table = pa.table({"n": list(range(100))})
    sink = pa.BufferOutputStream()
    with opener(sink, table.schema) as writer:  # type: ignore[operator]
        writer.write_table(table)
    parts = [
        pa.ipc.open_stream(piece.body).read_all()
        for piece in pieces(io.BytesIO(sink.getvalue().to_pybytes()), "arrow")
    ]
    assert len(parts) > 5
    assert pa.concat_tables(parts).equals(table)


def test_what_is_not_arrow_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadCall, match="not Arrow IPC"):
        list(pieces(io.BytesIO(b"n,text\n"), "arrow"))


@pytest.mark.parametrize(
    ("name", "kind"), [("a.arrow", "arrow"), ("b.JSONL", "jsonl"), (str(Path("x", "c.csv")), "csv")]
)
def test_the_format_follows_the_name(name: str, kind: str) -> None:
    assert format_of(name, None) == kind
    assert format_of(name, "csv") == "csv"


def test_a_pipe_must_be_told_its_format() -> None:
    with pytest.raises(BadCall, match=r"standard input.*--format"):
        format_of("-", None)
