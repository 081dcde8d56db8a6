"""Events of which some come late: held back, and sent with a later commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock_lab.measure.feeding import Source

EVERY = 4


@dataclass(frozen=True)
class LateRows:
    """Every fourth row of each stream comes `by` commits after the rows around it.

    Ask for commits of one size only: which rows are held back is counted within a commit.
    """

    source: Source
    by: int

    @property
    def keys(self) -> Mapping[str, str]:
        return self.source.keys

    def commit(self, first: int, count: int) -> dict[str, pa.RecordBatch]:
        on_time = self._rows(first, count, late=False)
        if first < self.by * count or not count:
            return on_time
        late = self._rows(first - self.by * count, count, late=True)
        return {name: pa.concat_batches([rows, late[name]]) for name, rows in on_time.items()}

    def _rows(self, first: int, count: int, *, late: bool) -> dict[str, pa.RecordBatch]:
        return {
            name: rows.filter(pa.array((np.arange(rows.num_rows) % EVERY == 0) == late))
            for name, rows in self.source.commit(first, count).items()
        }
