"""`penstock.enrich`: a frame's rows with columns from a remote store, looked up by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from penstock.client import default
from penstock.errors import BadCall
from penstock.lookup.ahead import Ahead, AheadSource
from penstock.lookup.columns import check_key_type, check_time_type
from penstock.lookup.counts import LookupCounts
from penstock.lookup.store import Store
from penstock.lookup.worker import BEHAVIOURS, Enrichment, enrich_batches
from penstock.model.ddl import parse_ddl
from penstock.prefetch.cache_policies import OFF, POLICIES
from penstock.spark.installed import need_pyspark

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame

CACHE_BYTES = 64 << 20
IN_FLIGHT_MAX = 64
RETRIES_MAX = 20

_counts: dict[str, Accumulator[LookupCounts]] = {}
"""By name: the counts of the newest enrichment called so."""


def enrich(
    df: DataFrame,
    store: Store,
    *,
    on: str,
    missing: str = "null",
    failure: str = "error",
    cache: str = "timestamp",
    cache_bytes: int = CACHE_BYTES,
    ttl_s: float | None = None,
    time: str | None = None,
    ahead: Ahead | bool = False,
    timeout_s: float = 1.0,
    retries: int = 2,
    in_flight: int = 4,
    name: str | None = None,
) -> DataFrame:
    """The frame with the store's columns behind its own: those of the key in the column `on`.

    Streaming or not, from any source. Values are looked up in Python workers, one round trip for
    the keys of a record batch that a worker's cache of `cache_bytes` does not have; `cache` is
    `timestamp`, `lru`, `clock` or `off`, and an entry lives for `ttl_s`. `ahead=True` or an `Ahead`
    reads rows that still wait in the log, so that their values are there before they are. `time` is
    the event-time column that the cache is ordered by, instead of the time of reading.

    `missing` says what a key that the store does not have, or a null, makes of its row, `failure`
    what a store does that has not answered after `1 + retries` tries of `timeout_s` each: `null`,
    `drop` or `error`. An error fails the task, which Spark tries again as its settings say. A
    watermark must be declared after this: output of a Python operator carries none.

    `enrich_counts(name)` counts; `name` is that of the column unless it is given.
    """
    need_pyspark()
    _check_choices(missing, failure, cache, ahead)
    _check_numbers(cache_bytes, ttl_s, timeout_s, retries, in_flight)
    columns = _check_columns(df, store, on, time)
    spec = Enrichment(
        id=uuid4().hex,
        store=store,
        on=on,
        time=time,
        missing=missing,
        failure=failure,
        cache=cache,
        cache_bytes=cache_bytes,
        ttl_s=ttl_s,
        timeout_s=timeout_s,
        retries=retries,
        in_flight=in_flight,
        ahead=_ahead_source(df, ahead, on, time),
    )
    return _mapped(df, spec, columns, name or on)


def enrich_counts(name: str) -> LookupCounts:
    """The counts of the newest enrichment of that name in this process, up to its last task."""
    accumulator = _counts.get(name)
    if accumulator is None:
        raise BadCall(
            f"nothing is enriched under the name {name!r}; there is "
            f"{', '.join(map(repr, _counts)) or 'nothing yet'}",
            code="unknown_enrich",
        )
    return LookupCounts().add(accumulator.value)


def _mapped(df: DataFrame, spec: Enrichment, columns: pa.Schema, name: str) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    from penstock.spark.lookup_accumulator import new_accumulator, task_place

    accumulator = new_accumulator(df.sparkSession.sparkContext)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return enrich_batches(spec, batches, task_place(), accumulator.add)

    schema = StructType([*df.schema.fields, *from_arrow_schema(columns).fields])
    enriched = df.mapInArrow(run, schema)
    _counts[name] = accumulator
    return enriched


def _check_choices(missing: str, failure: str, cache: str, ahead: Ahead | bool) -> None:
    for word, chosen, choices in (
        ("missing", missing, BEHAVIOURS),
        ("failure", failure, BEHAVIOURS),
        ("cache", cache, POLICIES),
    ):
        if chosen not in choices:
            raise BadCall(
                f"{word} is {chosen!r}; it is one of {', '.join(choices)}", code="bad_enrich"
            )
    if ahead and cache == OFF:
        raise BadCall(
            "what is read ahead is kept in the cache, which is off; choose another cache, or leave "
            "ahead out",
            code="bad_enrich",
        )


def _check_numbers(
    cache_bytes: int, ttl_s: float | None, timeout_s: float, retries: int, in_flight: int
) -> None:
    for word, number, is_right, range_words in (
        ("cache_bytes", cache_bytes, cache_bytes > 0, "more than 0; cache='off' keeps nothing"),
        ("ttl_s", ttl_s, ttl_s is None or ttl_s > 0, "more than 0, or None: for ever"),
        ("timeout_s", timeout_s, 0 < timeout_s <= 600, "more than 0 and 600 at most"),
        ("retries", retries, 0 <= retries <= RETRIES_MAX, f"0 to {RETRIES_MAX}"),
        ("in_flight", in_flight, 1 <= in_flight <= IN_FLIGHT_MAX, f"1 to {IN_FLIGHT_MAX}"),
    ):
        if not is_right:
            raise BadCall(f"{word} is {number}; it is {range_words}", code="bad_enrich")


def _check_columns(df: DataFrame, store: Store, on: str, time: str | None) -> pa.Schema:
    """The store's columns, if they and those that are asked for go with the frame's."""
    from pyspark.sql.pandas.types import to_arrow_type

    if not isinstance(store, Store):
        raise BadCall(
            f"the store is a {type(store).__name__}; give a penstock.Redis, or an object with "
            "`columns` and `connect`, as penstock.lookup.store says",
            code="bad_enrich",
        )
    for word, column in (("on", on), ("time", time)):
        if column is not None and column not in df.columns:
            raise BadCall(
                f"the frame has no column {column!r} for {word}; it has {', '.join(df.columns)}",
                code="bad_enrich",
            )
    check_key_type(to_arrow_type(df.schema[on].dataType, timezone="UTC"), on)
    if time is not None:
        check_time_type(to_arrow_type(df.schema[time].dataType, timezone="UTC"), time)
    columns = parse_ddl(store.columns)
    names = [name.lower() for name in df.columns]
    twice = [name for name in columns.names if name.lower() in names]
    if twice:
        raise BadCall(
            f"the frame has {', '.join(twice)} already; rename or drop it before it is looked up",
            code="bad_enrich",
        )
    return columns


def _ahead_source(
    df: DataFrame, ahead: Ahead | bool, on: str, time: str | None
) -> AheadSource | None:
    if ahead is False:
        return None
    chosen = Ahead() if ahead is True else ahead
    client = default.current()
    stream = chosen.stream if chosen.stream is not None else _stream_of(df)
    schema = client.schema(stream)
    lacking = [name for name in (on, time) if name is not None and name not in schema.names]
    if chosen.rows is None and lacking:
        raise BadCall(
            f"the stream {stream} has no column {', '.join(lacking)}, so its rows cannot be read "
            "ahead as they are; give Ahead(rows=…), a function that makes the column",
            code="bad_enrich",
        )
    return AheadSource(stream, client.address, chosen.rows, on, time)


def _stream_of(df: DataFrame) -> str:
    """The one stream of the log that the frame reads."""
    from penstock.spark import jvm

    streams = jvm.streams_read(df)
    if len(streams) != 1:
        raise BadCall(
            f"the frame reads {', '.join(streams) or 'no stream of the log'}, and ahead needs one; "
            "name it: Ahead(stream=…)",
            code="bad_enrich",
        )
    return streams[0]
