"""What the client gives back."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pyarrow as pa


class Stream(NamedTuple):
    """A stream as the server describes it; positions and counts are of the moment of asking."""

    name: str
    schema: pa.Schema
    ddl: str
    substreams: int
    key: tuple[str, ...]
    earliest: int
    latest: int
    rows: int
    bytes: int


class Appended(msgspec.Struct, frozen=True):
    """Rows are durable and visible up to `position`; `duplicate`: they were there already."""

    position: int
    rows: int
    entries: tuple[int, ...] = ()
    duplicate: bool = False


class Followed(NamedTuple):
    """Rows in commit order, and where to go on once they are dealt with."""

    rows: pa.Table
    position: int
