"""The pace of a query: whether its batches keep up with what arrives, and how short a deadline can
hold, with the cores that the other queries leave."""

from __future__ import annotations

from penstock.admission.arrivals import Unit
from penstock.admission.book import QueryBook
from penstock.admission.load import Load
from penstock.fit.line import Line

BATCHES_MIN = 4
"""Batches from which on the estimator is trusted: a floor is told, and batches may be larger than
the double of the largest one."""
CORES_MIN = 0.1
MEGABYTE = 1e6


def line_of(book: QueryBook, cores: float) -> Line | None:
    """Time against size in the unit in which the query's sources tell what waits; None before a
    batch was measured in it."""
    if book.arrivals.unit == "bytes":
        return book.ours.line_by_bytes(cores)
    return book.ours.line_by_rows(cores)


def busy_share(book: QueryBook, cores: float) -> float:
    """The share of the query's time that goes into what arrives, fixed costs left out; above 1 even
    the largest batches do not keep up. It is also the time by which a batch grows with each
    millisecond of waiting."""
    line = line_of(book, cores)
    return 0.0 if line is None else book.arrivals.flow.per_ms * max(line.slope, 0.0)


def unsustainable_rate(book: QueryBook, load: Load, cores: int) -> str | None:
    """A sentence that says how fast the backlog grows, if what arrives cannot be kept up with even
    in the largest batches; None if it can.

    On all cores the rate alone tells, in rows; how many bytes a folder gave is known from its
    backlog only. Beside other queries the backlog has to grow, too: some take all the cores that
    they can get, and leave them to whoever needs them.
    """
    flow, unit = book.arrivals.flow, book.arrivals.unit
    per_ms, growth = flow.per_ms, flow.growth_per_ms
    if (busy := busy_share(book, cores)) >= 1.0 and (growth > 0.0 or unit == "rows"):
        done = per_ms / busy
        return (
            f"the rate cannot be sustained: {rate_text(unit, per_ms)} arrive, "
            f"{rate_text(unit, done)} can be processed, the backlog grows by "
            f"{rate_text(unit, max(per_ms - done, growth))}"
        )
    taken = load.core_share()
    if growth <= 0.0 or busy_share(book, max(cores - taken, CORES_MIN)) < 1.0:
        return None
    return (
        f"the rate cannot be sustained beside other queries, which keep {taken:.1f} of {cores} "
        f"cores busy: {rate_text(unit, per_ms)} arrive, "
        f"{rate_text(unit, max(per_ms - growth, 0.0))} are processed, the backlog grows by "
        f"{rate_text(unit, growth)}"
    )


def floor_ms(book: QueryBook, cores: int) -> float | None:
    """The time that a batch of any size takes at the median: no deadline below it can hold; None
    before there is history."""
    predicted = book.ours.predict(0, 0, cores) if book.ours.batches >= BATCHES_MIN else None
    return None if predicted is None else predicted.ms_p50


def sustainable_ms(book: QueryBook, load: Load, cores: int) -> float | None:
    """The shortest deadline that can hold at the present rate; None if none can, or before there is
    history. A row waits for the batch before it and then for its own, and both pay the fixed part:
    the deadline is twice that, over the share of the time that rows leave."""
    cores_left = load.cores_left(cores)
    predicted = book.ours.predict(0, 0, cores_left)
    busy = busy_share(book, cores_left)
    if predicted is None or busy >= 1.0 or unsustainable_rate(book, load, cores) is not None:
        return None
    return (2 * predicted.ms_high + book.ours.between_ms()) / (1.0 - busy)


def rate_text(unit: Unit, per_ms: float) -> str:
    """A rate in words: rows in a second, or megabytes."""
    if unit == "bytes":
        return f"{1000 * per_ms / MEGABYTE:.1f} MB/s"
    return f"{1000 * per_ms:.0f} rows/s"
