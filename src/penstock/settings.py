"""Every setting of the server: what it is for, its unit, its bounds and its default, once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import BadCall

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def _number(default: int, low: int, high: int, unit: str, doc: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "unit": unit, "doc": doc})


@dataclass(frozen=True)
class Settings:
    """Frozen; made once at start. A value outside its bounds is refused by name."""

    entry_bytes_max: int = _number(
        16 * MIB, KIB, GIB, "bytes",
        "largest payload of one entry; larger record batches of producers are split by rows",
    )  # fmt: skip
    request_bytes_max: int = _number(
        64 * MIB, KIB, GIB, "bytes",
        "largest request body; a larger one is refused before it is kept",
    )  # fmt: skip
    page_bytes: int = _number(
        8 * MIB, KIB, GIB, "bytes",
        "size of one answer of rows when the request does not say; at least one entry is sent",
    )  # fmt: skip
    page_bytes_max: int = _number(
        64 * MIB, KIB, GIB, "bytes",
        "largest answer of rows a request may ask for; more is cut to this",
    )  # fmt: skip
    page_entries_max: int = _number(
        10_000, 1, 1_000_000, "entries",
        "most entries in one answer of rows; the rest follows by cursor",
    )  # fmt: skip
    hold_ms_max: int = _number(
        1_000, 0, 60_000, "milliseconds",
        "longest a request is held while there is nothing to answer; a longer wish is cut to this",
    )  # fmt: skip
    queue_max: int = _number(
        4_096, 1, 1_000_000, "operations",
        "operations waiting for the writer; one more is refused with 'busy'",
    )  # fmt: skip
    queue_bytes_max: int = _number(
        512 * MIB, KIB, 64 * GIB, "bytes",
        "payload waiting for the writer; more is refused with 'busy'",
    )  # fmt: skip
    group_max: int = _number(
        256, 1, 10_000, "operations",
        "most operations that share one sync; the rest goes into the next",
    )  # fmt: skip
    group_bytes_max: int = _number(
        32 * MIB, KIB, GIB, "bytes",
        "payload that closes a group; the operation that passes it is still in",
    )  # fmt: skip
    ingest_requests_max: int = _number(
        32, 1, 10_000, "requests",
        "request bodies held in memory at once; further ones wait to be read",
    )  # fmt: skip
    fetch_threads: int = _number(
        4, 1, 256, "threads",
        "threads that decode what comes in and build what goes out",
    )  # fmt: skip
    producers_max: int = _number(
        100_000, 1, 100_000_000, "producers",
        "producers per log whose last sequence is remembered; the one unused longest is forgotten",
    )  # fmt: skip
    map_bytes: int = _number(
        1024 * GIB, MIB, 128 * 1024 * GIB, "bytes",
        "address space of the log's file and so its largest size; the file grows as it is used",
    )  # fmt: skip
    verify_entries_max: int = _number(
        1_000, 0, 1_000_000_000, "entries",
        "entries at the end of the log that are verified at start",
    )  # fmt: skip
    verify_bytes_max: int = _number(
        64 * MIB, 0, 128 * 1024 * GIB, "bytes",
        "bytes at the end of the log that are verified at start",
    )  # fmt: skip
    stop_s_max: int = _number(
        30, 1, 3_600, "seconds",
        "how long a stopping server waits for requests under way; then they are cut off",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            low, high = each.metadata["low"], each.metadata["high"]
            if not low <= value <= high:
                raise BadCall(
                    f"{each.name} is {value}, and must be {low} to {high} {each.metadata['unit']}",
                    code="bad_request",
                )


def settings_from(texts: dict[str, str]) -> Settings:
    """Settings from `name=value` texts, as the command line has them."""
    known = {each.name for each in dataclasses.fields(Settings)}
    values: dict[str, int] = {}
    for name, text in texts.items():
        if name not in known:
            raise BadCall(
                f"there is no setting {name!r}; there are {', '.join(sorted(known))}",
                code="bad_request",
            )
        try:
            values[name] = int(text.replace("_", ""))
        except ValueError:
            raise BadCall(f"{name} is {text!r}, and must be a number", code="bad_request") from None
    return Settings(**values)


def describe() -> list[dict[str, str]]:
    """Every setting with its unit, bounds, default and doc, for the documentation page."""
    return [
        {
            "name": each.name,
            "default": str(each.default),
            "unit": each.metadata["unit"],
            "bounds": f"{each.metadata['low']} to {each.metadata['high']}",
            "doc": each.metadata["doc"],
        }
        for each in dataclasses.fields(Settings)
    ]
