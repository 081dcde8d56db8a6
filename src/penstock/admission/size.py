"""The size of a batch: how much of what waits goes into it, and why not more."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from penstock.admission.book import QueryBook
from penstock.admission.estimate.ours import FIRST_BYTES, FIRST_ROWS
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.admission.pace import BATCHES_MIN
from penstock.fit.line import Line

GROWTH_AT_FIRST = 2
GROWTH = 4
FIXED_SHARE_MAX = 0.5
"""A batch is not cut so small that more of its time than this is fixed cost."""
DRAIN_SPARE = 1.1
"""Batches under overload take in this much more than arrives meanwhile."""
LATE_SPARE = 1.5
"""The same factor once rows are late: at 1.1 a backlog of 10 s takes 100 s to work off."""
RECOVERY_SLACK = 1.1
"""A recovery may take this much longer than the fastest, if its batches are smaller."""


class BatchSize(msgspec.Struct, frozen=True):
    """Bounds of a batch, None for all that waits, and the reason if there is one."""

    rows_max: int | None = None
    bytes_max: int | None = None
    reason: str | None = None

    @property
    def is_full(self) -> bool:
        """Whether more rows wait than fit into the batch."""
        return self.rows_max is not None or self.bytes_max is not None


class _Amount(msgspec.Struct, frozen=True):
    """The waiting data in one unit, and what is known of batches in that unit."""

    unit: str
    total: int
    first: int
    largest: int
    line: Line | None
    task_line: Line | None
    per_ms: float

    def bounded(self, size: float, reason: str) -> BatchSize:
        if size >= self.total:
            return BatchSize()
        bound = max(1, int(size))
        if self.unit == "rows":
            return BatchSize(rows_max=bound, reason=reason)
        return BatchSize(bytes_max=bound, reason=reason)


def batch_size(book: QueryBook, offer: Offer, load: Load, time_ms: float) -> BatchSize:
    """The size of a batch that may take `time_ms` from cut to visible, in this order:

    1. without history it is small; later at most a multiple of the largest batch that was measured;
    2. no longer tasks than the tightest deadline of another query bears;
    3. what can be done in time, but not so little that the fixed cost eats the throughput;
    4. if not even that is done in time, rows are late anyway: the size that recovers fastest.
    """
    amount = _amount(book, offer)
    if amount is None:
        return BatchSize()
    known_max, known_reason = _known_size(book, amount)
    if amount.line is None or amount.line.slope <= 0.0:
        return amount.bounded(known_max, known_reason)
    bounds = [
        (known_max, known_reason),
        _bearable(amount, load, time_ms),
        _timely(book, amount, time_ms),
    ]
    size, reason = min(bounds, key=lambda bound: bound[0])
    return amount.bounded(size, reason)


def uncounted_size(book: QueryBook, offer: Offer) -> BatchSize:
    """The bound of a batch from sources that take a limit of rows and cannot tell how many wait: a
    backlog must not be the first batch there either. Whether more waits than that is not known."""
    if not any(waiting.has_data and waiting.takes_uncounted_rows for waiting in offer.inputs):
        return BatchSize()
    rows_max = max(_growth(book) * book.ours.rows_largest, FIRST_ROWS)
    return BatchSize(rows_max=rows_max, reason=f"{rows_max} rows at most, as none are counted")


def _amount(book: QueryBook, offer: Offer) -> _Amount | None:
    ours, rows, size_bytes = book.ours, offer.rows, offer.bytes
    if rows:
        return _Amount(
            "rows", rows, FIRST_ROWS, ours.rows_largest, ours.line_by_rows(offer.cores),
            ours.task_line_by_rows(), book.arrivals.rows.per_ms,
        )  # fmt: skip
    if size_bytes:
        return _Amount(
            "bytes", size_bytes, FIRST_BYTES, ours.bytes_largest, ours.line_by_bytes(offer.cores),
            ours.task_line_by_bytes(), book.arrivals.bytes.per_ms,
        )  # fmt: skip
    return None


def _known_size(book: QueryBook, amount: _Amount) -> tuple[float, str]:
    """The size up to which the estimator may be trusted: a backlog must not be the first batch."""
    if not amount.largest:
        return amount.first, f"the first batch is small: {amount.first} {amount.unit} at most"
    growth = _growth(book)
    size = max(growth * amount.largest, amount.first)
    return size, f"{growth} times the largest batch so far: {size} {amount.unit}"


def _growth(book: QueryBook) -> int:
    return GROWTH_AT_FIRST if book.ours.batches < BATCHES_MIN else GROWTH


def _bearable(amount: _Amount, load: Load, time_ms: float) -> tuple[float, str]:
    """The size whose tasks the tightest deadline of another query bears; never so small that more
    arrives than is processed, or that rows which are late stay so for long: a backlog without end
    would be worse for all. Without bound where even an empty task would be too long, since nothing
    is won there, and where no size seems to keep up."""
    bearable_ms = load.bearable_task_ms()
    line = amount.task_line
    if bearable_ms is None or line is None or line.slope <= 0.0 or line.fixed >= bearable_ms:
        return math.inf, ""
    size = (bearable_ms - line.fixed) / line.slope
    if amount.line is not None and amount.line.slope > 0.0:
        spare = LATE_SPARE if time_ms < amount.line.fixed else DRAIN_SPARE
        if spare * amount.per_ms * amount.line.slope >= 1.0:
            # No size seems to keep up, or to catch up. Batches of one size cannot tell a fixed cost
            # from one per row: if they stayed small, nothing would ever show that larger ones do.
            return math.inf, ""
        size = max(size, _least_size(amount.line, amount.per_ms, spare))
    return size, f"tasks of {bearable_ms:.0f} ms are what another query's deadline bears"


def _timely(book: QueryBook, amount: _Amount, time_ms: float) -> tuple[float, str]:
    line = amount.line
    assert line is not None  # the caller has a slope
    size = (book.ours.middle_of_high(time_ms) - line.fixed) / line.slope
    middle_ms = line.at(amount.total)
    # At its last moment a batch is as long as it may be: half the margin may go, else the moment's
    # own delay would leave a few rows behind, for a batch of their own.
    if (middle_ms + book.ours.high(middle_ms)) / 2 <= time_ms:
        return math.inf, ""
    least = _least_size(line, amount.per_ms)
    if size >= least:
        return size, f"cut to what can be visible within {time_ms:.0f} ms"
    recovering = _recovering_size(amount, line, least)
    return recovering, (f"rows are late: batches of {recovering:.0f} {amount.unit} recover fastest")


def _least_size(line: Line, per_ms: float, spare: float = DRAIN_SPARE) -> float:
    """The size below which the fixed cost eats the throughput: more than half of the time, or so
    much that not `spare` times of what arrives is processed."""
    half = line.fixed / line.slope * (1 - FIXED_SHARE_MAX) / FIXED_SHARE_MAX
    left = 1.0 - spare * per_ms * line.slope
    if left <= 0.0:
        return half
    return max(half, spare * per_ms * line.fixed / left)


def _recovering_size(amount: _Amount, line: Line, least: float) -> float:
    """The size of batches that brings rows back under the deadline soonest. Larger ones pay the
    fixed cost less often, but soon hardly gain by it, and whatever arrives waits for them: so the
    least size that comes near to the fastest. At a rate that nothing recovers from, the least one
    that comes near to the highest throughput."""
    busy = amount.per_ms * line.slope
    if busy >= 1.0:
        enough = line.fixed / line.slope * RECOVERY_SLACK / (RECOVERY_SLACK - 1.0)
        return min(max(least, enough), float(amount.total))
    times_ms = {size: _recover_ms(amount, line, size) for size in _candidates(least, amount.total)}
    fastest_ms = min(times_ms.values())
    return min(size for size, ms in times_ms.items() if ms <= RECOVERY_SLACK * fastest_ms)


def _candidates(least: float, total: int) -> Iterator[float]:
    size = max(least, 1.0)
    while size < total:
        yield size
        size *= 2
    yield float(total)


def _recover_ms(amount: _Amount, line: Line, size: float) -> float:
    """The time until no row is late, with batches of this size: until the backlog is gone, and then
    the batches of what arrived during the one before, each shorter than that."""
    batch_ms = line.at(size)
    gained = size - amount.per_ms * batch_ms
    rest = max(amount.total - size, 0.0)
    if rest > 0.0 and gained <= 0.0:
        return math.inf
    drain_ms = rest / gained * batch_ms if rest > 0.0 else 0.0
    return drain_ms + batch_ms / (1.0 - amount.per_ms * line.slope)
