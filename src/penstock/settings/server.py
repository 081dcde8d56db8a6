"""Every setting of the server, once: doc, unit, bounds and default."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from penstock.errors import BadCall
from penstock.settings.setting import GIB, KIB, MIB, Setting

__all__ = ["KIB", "Settings", "server_settings", "settings_from"]


def _number(default: int, low: int, high: int, unit: str, doc: str) -> Any:
    return field(default=default, metadata={"min": low, "max": high, "unit": unit, "doc": doc})


@dataclass(frozen=True)
class Settings:
    """Values for one server, frozen at its start. One outside its bounds is refused by name."""

    entry_bytes_max: int = _number(
        16 * MIB, KIB, GIB, "bytes",
        "largest payload of one entry; larger record batches of producers are split by rows",
    )  # fmt: skip
    request_bytes_max: int = _number(
        64 * MIB, KIB, GIB, "bytes",
        "largest request body; a larger one is refused before it is kept",
    )  # fmt: skip
    request_files_max: int = _number(
        1_000, 1, 1_000, "files",
        "most checkpoint files in one request; a query is told it when it is taken over",
    )  # fmt: skip
    page_bytes: int = _number(
        8 * MIB, KIB, GIB, "bytes",
        "size of one answer of rows, records or markers when the request does not say; at least "
        "one entry is sent",
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
        1_000, 0, 60_000, "ms",
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
    unsynced_ms_max: int = _number(
        100, 0, 10_000, "ms",
        "how long appends of a query that were answered early may wait for a sync when nothing "
        "else brings one; 0: nothing is answered early. Only in a log in one folder, and only to "
        "queries with `spark.penstock.commit.earlyAnswers`",
    )  # fmt: skip
    body_bytes_max: int = _number(
        256 * MIB, KIB, 64 * GIB, "bytes",
        "request bodies held in memory at once; further ones wait to be read, but for the oldest, "
        "a quarter is for bodies of up to 1 MiB, and who stands still is ended when others wait",
    )  # fmt: skip
    pages_bytes_max: int = _number(
        256 * MIB, KIB, 64 * GIB, "bytes",
        "answers held in memory at once; the nearer to it, the smaller a page becomes",
    )  # fmt: skip
    ingest_threads: int = _number(
        2, 1, 256, "threads",
        "threads that decode what comes in, where that takes long",
    )  # fmt: skip
    fetch_threads: int = _number(
        4, 1, 256, "threads",
        "threads that look things up in the log and build what goes out",
    )  # fmt: skip
    connections_max: int = _number(
        2_000, 1, 1_000_000, "connections",
        "connections at once, or as many as the system's bound on open files leaves; for one more "
        "the one idle longest is closed, and while none is idle it is refused with 'busy' "
        "(over TLS it is closed without an answer)",
    )  # fmt: skip
    idle_s_max: int = _number(
        75, 1, 86_400, "s",
        "how long a connection without a request is kept",
    )  # fmt: skip
    stall_s_max: int = _number(
        30, 1, 3_600, "s",
        "how long a handshake of TLS and a request's head may take, and each 64 KiB of its body or "
        "of an answer that is being taken; then the connection is ended",
    )  # fmt: skip
    producers_max: int = _number(
        100_000, 1, 100_000_000, "producers",
        "producers per log whose last sequence is remembered; above it one that has been silent "
        "for producer_kept_ms_min is forgotten for a new one",
    )  # fmt: skip
    producer_kept_ms_min: int = _number(
        3_600_000, 0, 10 * 365 * 24 * 3_600_000, "ms",
        "how long after its last append a producer is remembered however many there are; a new one "
        "above producers_max is refused until one has been silent for that long",
    )  # fmt: skip
    map_bytes: int = _number(
        1024 * GIB, MIB, 128 * 1024 * GIB, "bytes",
        "address space of the log's file and so its largest size; the file grows as it is used",
    )  # fmt: skip
    reserve_bytes: int = _number(
        4 * MIB, 0, GIB, "bytes",
        "room on disk and above map_bytes that is kept for trims and deletions, so that a full log "
        "can be made smaller",
    )  # fmt: skip
    verify_entries_max: int = _number(
        1_000, 0, 1_000_000_000, "entries",
        "entries at the end of the log that are verified at start",
    )  # fmt: skip
    verify_bytes_max: int = _number(
        64 * MIB, 0, 128 * 1024 * GIB, "bytes",
        "bytes at the end of the log that are verified at start",
    )  # fmt: skip
    collect_s: int = _number(
        60, 0, 86_400, "s",
        "how often what nobody needs any more is looked for and trimmed; 0: never",
    )  # fmt: skip
    trim_after_ms: int = _number(
        24 * 3_600_000, 0, 10 * 365 * 24 * 3_600_000, "ms",
        "how long rows, markers and leftovers that nobody needs stay all the same",
    )  # fmt: skip
    trim_entries_max: int = _number(
        250, 1, 1_000_000, "entries",
        "about the most entries that one step of a trim removes; appends wait for a step",
    )  # fmt: skip
    markers_kept_min: int = _number(
        100, 1, 1_000_000, "markers",
        "markers of a query that stay whatever its checkpoint location is known to have",
    )  # fmt: skip
    consumer_away_ms_max: int = _number(
        7 * 24 * 3_600_000, 1, 10 * 365 * 24 * 3_600_000, "ms",
        "how long a consumer or query may stay away; then it is named, and no longer waited for",
    )  # fmt: skip
    producer_idle_ms_max: int = _number(
        7 * 24 * 3_600_000, 1, 10 * 365 * 24 * 3_600_000, "ms",
        "how long after its last append a producer's sequence is remembered once that is trimmed",
    )  # fmt: skip
    log_replicas: int = _number(
        3, 1, 5, "replicas",
        "servers that keep each message of a log in JetStream, when its stream is made",
    )  # fmt: skip
    log_wait_s_max: int = _number(
        600, 1, 86_400, "s",
        "how long a starting server waits for a log in JetStream; then it gives up with a message",
    )  # fmt: skip
    purge_bytes_min: int = _number(
        64 * MIB, 0, 1024 * GIB, "bytes",
        "payload trimmed from a log in JetStream before its messages are purged there too",
    )  # fmt: skip
    purge_wait_s: int = _number(
        60, 0, 86_400, "s",
        "how far behind a server of a log in JetStream may be when messages are purged; one that "
        "is further behind must be started again",
    )  # fmt: skip
    stop_s_max: int = _number(
        30, 1, 3_600, "s",
        "how long a stopping server waits for requests under way; then they are cut off",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for setting in server_settings():
            setting.refuse_out_of_bounds(getattr(self, setting.name))


@cache
def server_settings() -> tuple[Setting, ...]:
    """Every field of `Settings`, described."""
    return tuple(
        Setting(name=each.name, default=getattr(Settings, each.name), **each.metadata)
        for each in dataclasses.fields(Settings)
    )


def settings_from(texts: dict[str, str]) -> Settings:
    """Settings from `name=value` texts, as the command line has them."""
    known = {setting.name for setting in server_settings()}
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
