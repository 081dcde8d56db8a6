"""Cases of the columnar suite: a query with one size of windows and of batches. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import Bug
from penstock_lab.queries import Query
from penstock_lab.queries.cluster import cm_category, cm_job
from penstock_lab.queries.linear_road import lr_count, lr_speed

FAMILIES = {
    "cm_category": cm_category.query,
    "cm_job": cm_job.query,
    "lr_speed": lr_speed.query,
    "lr_count": lr_count.query,
}


class Case(msgspec.Struct, frozen=True):
    """A query with one size of windows and of batches."""

    family: str
    range_s: int
    slide_s: int
    rows: int
    """Rows of a batch."""
    batches: int
    warm_up: int
    is_small: bool = False
    is_goal: bool = True
    is_learning: bool = False
    """Whether nothing of it is measured: planning learns from it."""

    @property
    def size_name(self) -> str:
        if self.is_learning:
            return "_learning"
        if self.rows == 1:
            return "_one"
        return "_small" if self.is_small else ""

    @property
    def name(self) -> str:
        return f"{self.family}_{self.range_s}_{self.slide_s}{self.size_name}"

    @property
    def query(self) -> Query:
        return FAMILIES[self.family](range_s=self.range_s, slide_s=self.slide_s)

    @property
    def stream(self) -> str:
        """The stream of the log that it reads, whole."""
        return self.query.inputs[0] + self.size_name

    @property
    def windows(self) -> int:
        """Windows that a row is in."""
        return self.range_s // self.slide_s

    @property
    def commits_rows(self) -> int:
        return self.rows * (self.warm_up + self.batches)


def streams_of(cases: Sequence[Case]) -> dict[str, int]:
    """Streams to be written, each with its rows; all cases of a stream read it whole."""
    rows: dict[str, int] = {}
    for case in cases:
        if rows.setdefault(case.stream, case.commits_rows) != case.commits_rows:
            raise Bug(f"cases of {case.stream} need different numbers of rows", code="bug")
    return rows
