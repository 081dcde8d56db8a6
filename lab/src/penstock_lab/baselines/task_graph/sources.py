"""NEXMark's events as the rows of a task graph's source, tick by tick.

Rows carry what the query uses and, at the end, the padding that gives them NEXMark's sizes. Their
send time is not known here; `stamped` puts it in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph import q4, q8
from penstock_lab.baselines.task_graph.messages import Row, Rows, encode
from penstock_lab.workloads.load import Load, pieces
from penstock_lab.workloads.nexmark.order import AUCTIONS_PER_EPOCH, EPOCH

STREAMS: Mapping[str, tuple[str, ...]] = {"q4": ("auctions", "bids"), "q8": ("persons", "auctions")}
SENT = -2
"""Where in a row its send time goes: before the padding."""
Unsent: TypeAlias = list[object]


class Tick(NamedTuple):
    """The rows of one tick, without their send time, and the latest event time of them."""

    due_us: int
    clock_us: int
    rows: list[Unsent]


def load_of(
    graph: str,
    rate: int,
    seconds: float,
    seed: int,
    tick_ms: int,
    *,
    first: int = 0,
    open_s: float = 0.0,
) -> Load:
    """Events of all three kinds per second, of which the streams that the query reads are sent.

    `first` is the number of the first event. Auctions stay open for about `open_s` of event time;
    with 0 for as long as the reference has them.
    """
    if graph not in STREAMS:
        raise BadCall(f"there is no source for {graph!r}", code="unknown_query")
    streams = {name: name for name in STREAMS[graph]}
    auctions = round(open_s * rate * AUCTIONS_PER_EPOCH / EPOCH)
    options = {"auctions_in_flight": auctions} if auctions else {}
    return Load(
        "nexmark", streams, rate, seconds, seed, first=first, tick_ms=tick_ms, options=options
    )


def ticks(graph: str, load: Load) -> list[Tick]:
    """The ticks of all that the load sends, in the order they are due."""
    made: dict[int, Tick] = {}
    for piece in pieces(load):
        tick = made.setdefault(piece.tick, Tick(piece.due_us, 0, []))
        at_us = micros(piece.rows, "date_time")
        tick.rows.extend(_rows(graph, piece.stream, piece.rows, at_us))
        made[piece.tick] = tick._replace(clock_us=max(tick.clock_us, *at_us))
    return list(made.values())


def stamped(tick: Tick, sent_us: int) -> bytes:
    """The payload of a tick."""
    rows: list[Row] = [(*row[:SENT], sent_us, row[-1]) for row in tick.rows]
    return encode(Rows(tick.clock_us, rows))


def micros(rows: pa.RecordBatch, name: str) -> list[int]:
    values: list[int] = rows.column(name).cast(pa.int64()).to_pylist()
    return values


def _rows(graph: str, stream: str, rows: pa.RecordBatch, at_us: Sequence[int]) -> list[Unsent]:
    def column(name: str) -> list[object]:
        values: list[object] = rows.column(name).to_pylist()
        return values

    def repeated(value: object) -> list[object]:
        return [value] * rows.num_rows

    zero, extra = repeated(0), column("extra")
    columns: list[Sequence[object]]
    match graph, stream:
        case "q4", "auctions":
            ends = micros(rows, "expires")
            columns = [
                repeated(q4.AUCTION), column("id"), column("category"), at_us, ends, zero, extra,
            ]  # fmt: skip
        case "q4", "bids":
            columns = [repeated(q4.BID), column("auction"), column("price"), at_us, zero, extra]
        case "q8", "persons":
            columns = [repeated(q8.PERSON), column("id"), column("name"), at_us, zero, extra]
        case _:
            columns = [
                repeated(q8.AUCTION), column("seller"), repeated(None), at_us, zero, extra,
            ]  # fmt: skip
    return [list(row) for row in zip(*columns, strict=True)]
