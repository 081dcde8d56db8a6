"""Numbers and names that mean something."""

from __future__ import annotations

import re
from typing import NewType

from penstock.errors import BadCall

Lsn = NewType("Lsn", int)
"""Place of an entry in the log; the first entry has 1, so 0 is the position before everything."""

Substream = NewType("Substream", int)
BatchId = NewType("BatchId", int)
Instance = NewType("Instance", int)
QueryId = NewType("QueryId", str)
StreamName = NewType("StreamName", str)
FilePath = NewType("FilePath", str)
"""Path of a checkpoint file below the checkpoint location, made by `file_path`."""

BEFORE_ALL = Lsn(0)

KEY_TEXT_BYTES_MAX = 200
"""Of a tag, a producer or any other text that the log keeps as part of a key."""
KEY_BYTES_MAX = 511
"""Of a whole key of the store."""
SUBSTREAMS_MAX = 256
NAME_CHARS_MAX = 120
PATH_BYTES_MAX = 500

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_PATH = re.compile(r"[^\x00-\x1f\x7f,\\\ud800-\udfff]+")
_OFFSETS = re.compile(r"offsets/(0|[1-9][0-9]{0,17})")
_STORE = r"(state/[0-9]+/[0-9]+(?:/(?!SSTs/|logs/)[^/]+)?)"
_SNAPSHOT = re.compile(_STORE + r"/(?:[0-9]+(?:_[0-9a-fA-F-]+)?\.zip|(?:SSTs|logs)/[^/]+)")
_CHANGE_LOG = re.compile(_STORE + r"/[0-9]+(?:_[0-9a-fA-F-]+)?\.changelog(?:\.crc)?")


def stream_name(text: str) -> StreamName:
    """A checked stream name: it goes into tags, paths and Spark options unescaped."""
    if len(text) > NAME_CHARS_MAX or not _NAME.fullmatch(text):
        raise BadCall(
            f"{text!r} is not a stream name; use a letter or underscore first, then letters, "
            f"digits, '_', '-' or '.', {NAME_CHARS_MAX} characters at most",
            code="bad_name",
        )
    return StreamName(text)


def substream_tag(stream: StreamName, substream: Substream) -> str:
    """Tag of every entry of one substream, markers included."""
    return f"s/{stream}/{substream}"


def task_log_tag(query: QueryId) -> str:
    """Tag of a query's task log: its take-overs and markers, in order."""
    return f"t/{query}"


def files_tag(query: QueryId) -> str:
    """Tag of the checkpoint files of a query, whoever appended them and marked or not."""
    return f"f/{query}"


def file_path(text: str) -> FilePath:
    """A checked path of a checkpoint file, relative to the location it is copied to later.

    Nothing in it may lead out of that location, and no comma, which parts paths in a request.
    """
    parts = text.split("/")
    if (
        not 1 <= len(text.encode("utf-8", "replace")) <= PATH_BYTES_MAX
        or any(part in ("", ".", "..") for part in parts)
        or not _PATH.fullmatch(text)
    ):
        raise BadCall(
            f"{text!r} is not a path of a checkpoint file; give one relative to the checkpoint "
            "location, such as offsets/12, without '.', '..', commas or control characters, "
            f"{PATH_BYTES_MAX} bytes at most",
            code="bad_request",
        )
    return FilePath(text)


def offsets_path(batch: BatchId) -> FilePath:
    """The file in which Spark records what a batch reads."""
    return FilePath(f"offsets/{batch}")


def offsets_batch(path: FilePath) -> BatchId | None:
    """The batch whose recorded offsets the path holds; None for any other file."""
    path_match = _OFFSETS.fullmatch(path)
    return BatchId(int(path_match[1])) if path_match is not None else None


def snapshot_store(path: FilePath) -> str | None:
    """The folder of the state store that the path is part of a snapshot of; None for others."""
    path_match = _SNAPSHOT.fullmatch(path)
    return path_match[1] if path_match is not None else None


def change_log_store(path: FilePath) -> str | None:
    """The folder of the state store whose change log, or its checksum, the path is."""
    path_match = _CHANGE_LOG.fullmatch(path)
    return path_match[1] if path_match is not None else None


def snapshot_version(path: FilePath) -> int | None:
    """The version that a snapshot's own file carries in its name; None for the files it shares."""
    name = path.rpartition("/")[2]
    return int(re.split(r"[_.]", name)[0]) if name.endswith(".zip") else None
