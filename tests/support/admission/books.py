"""Books and offers for tests of policies: batches of a known cost, and rows that wait."""

from __future__ import annotations

from penstock.admission.book import Batch, BatchCost, BatchReport, QueryBook
from penstock.admission.decision import Cut
from penstock.admission.load import OtherQuery
from penstock.admission.offer import CutsBy, Offer, Waiting
from penstock.admission.terms import PolicyName, Terms

CORES = 2


def book_of(policy: PolicyName, deadline_ms: float | None = None, **terms: float) -> QueryBook:
    """A book without history."""
    return QueryBook("q", Terms(deadline_ms=deadline_ms, policy=policy, **terms))  # type: ignore[arg-type]


def offer_of(
    rows: int | None, age_ms: float, size_bytes: int | None = None, *, must_cut: bool = False,
    schedule: str | None = None,
) -> Offer:  # fmt: skip
    """So many rows in one source, the oldest of this age."""
    waiting = Waiting(0, rows, size_bytes, None, age_ms, CutsBy.ROWS)
    return Offer((waiting,), CORES, must_cut=must_cut, schedule=schedule)


def cost_of(
    rows: int, visible_ms: float, core_ms: float = 0.0, *, queued_ms: float = 0.0,
    task_ms: float = 0.0, number: int = 0, has_data: bool = True,
) -> BatchCost:  # fmt: skip
    """The cost of a batch."""
    return BatchCost(
        number, visible_ms, rows, None, has_data, queued_ms, 0.0, core_ms, task_ms, 2, CORES
    )


def learn_line(
    book: QueryBook, fixed_ms: float = 100.0, per_row_ms: float = 0.01, *, task_share: float = 0.5
) -> None:
    """Have a book learn from batches that cost exactly `fixed_ms` + `per_row_ms` x rows; all that
    grows with the rows is core-time, so that twice as many cores halve it."""
    for number in range(8):
        rows = 1_000 * (1 + number % 4)
        core_ms = per_row_ms * rows * CORES
        book.batch_done(
            cost_of(
                rows, fixed_ms + per_row_ms * rows, core_ms, task_ms=task_share * core_ms,
                number=-number - 1,
            ),
            now_ms=float(number),
        )  # fmt: skip


def measured(book: QueryBook, age_ms: float, visible_ms: float, rows: int = 1_000) -> None:
    """Have a book cut a batch and hear that it was visible after so long."""
    number = book.cut_made(Cut("test"), Batch(rows, None, age_ms, CORES), now_ms=0.0)
    book.reported(BatchReport(number, visible_ms=visible_ms), now_ms=visible_ms)


def other_open(
    query: str, core_ms: float, deadline_at_ms: float | None, **more: float
) -> OtherQuery:
    """Another query with an open batch that was cut at 0 and takes long."""
    return OtherQuery(
        query, is_open=True, open_core_ms=core_ms, open_at_ms=0.0, open_predicted_ms=1e9,
        open_until_ms=1e9, open_deadline_at_ms=deadline_at_ms, **more,  # type: ignore[arg-type]
    )  # fmt: skip
