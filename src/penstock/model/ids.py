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

BEFORE_ALL = Lsn(0)

SUBSTREAMS_MAX = 256
NAME_CHARS_MAX = 120

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


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
