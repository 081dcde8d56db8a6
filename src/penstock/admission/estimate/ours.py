"""Our estimator: planning and release as time, tasks as core-time over the cores a query gets.

Both parts have a fixed share and a share for each row or byte, refitted after every batch. Spark
pays about 100 ms for a batch of any size, which a mean throughput cannot express.
"""

from __future__ import annotations

import math

from penstock.admission.estimate.cost import BatchCost, Predicted
from penstock.fit.line import FittedLine, Line
from penstock.fit.quantile import RecentValues

HIGH = 0.97
"""The quantile of `ms_high`: of longer ones only the oldest rows are late."""
MIDDLE = 0.5
FIRST_ROWS = 1_000
FIRST_BYTES = 256 << 10
"""The most that a first batch has; one with less tells little of the cost of a row."""
ERROR_MEMORY = 0.9
RATIOS_MIN = 8
RATIOS_KEPT = 24
RATIO_FORGETTING = 0.85
RATIO_BOUNDS = (0.5, 2.0)


class _CostBySize:
    """The costs of batches against their size in one unit, rows or bytes."""

    def __init__(self, usual_size: float) -> None:
        self.core = FittedLine(usual_size)
        self.rest = FittedLine(usual_size)
        self.task = FittedLine(usual_size)
        self.error = 0.0

    def learn(self, size: float, alone_ms: float, cost: BatchCost) -> None:
        if self.core.values:
            error = abs(alone_ms - self.ms(size, cost.cores)) / max(alone_ms, 1.0)
            self.error = ERROR_MEMORY * self.error + (1 - ERROR_MEMORY) * error
        self.core.add(size, cost.core_ms)
        self.rest.add(size, max(alone_ms - cost.core_ms / max(cost.cores, 1), 0.0))
        self.task.add(size, cost.longest_task_ms)

    def ms(self, size: float, cores: float) -> float:
        return self.rest.line.at(size) + self.core.line.at(size) / max(cores, 0.1)

    def line(self, cores: float) -> Line:
        core, rest = self.core.line, self.rest.line
        cores = max(cores, 0.1)
        return Line(rest.fixed + core.fixed / cores, rest.slope + core.slope / cores)


class OurEstimator:
    """The cost of a query's batches when they have the cores they need; waiting is not in it."""

    def __init__(self) -> None:
        self._by_rows = _CostBySize(FIRST_ROWS)
        self._by_bytes = _CostBySize(FIRST_BYTES)
        self._times = RecentValues()
        self._core_times = RecentValues()
        self._errors = RecentValues()
        self._ratios = RecentValues(RATIOS_KEPT, RATIO_FORGETTING)
        self._without_data = RecentValues()
        self._between = RecentValues()
        self._core_between = RecentValues()
        self._since_data = (0.0, 0.0)
        self.batches = 0
        self.rows_largest = 0
        self.bytes_largest = 0

    def learn(self, cost: BatchCost) -> None:
        """Take a batch in; one without data is kept apart, as it pays the fixed part alone."""
        alone_ms = max(cost.visible_ms - cost.queued_ms, 0.0)
        if not cost.has_data:
            self._without_data.add(alone_ms)
            ms, core_ms = self._since_data
            self._since_data = (ms + alone_ms, core_ms + cost.core_ms)
            return
        self._between.add(self._since_data[0])
        self._core_between.add(self._since_data[1])
        self._since_data = (0.0, 0.0)
        expected = self.predict(cost.rows, cost.bytes, cost.cores)
        if expected is not None:
            self._errors.add((alone_ms - expected.ms_p50) / math.sqrt(max(expected.ms_p50, 1.0)))
            self._ratios.add(alone_ms * self._correction() / max(expected.ms_p50, 1.0))
        self.batches += 1
        self._times.add(alone_ms)
        self._core_times.add(cost.core_ms)
        if cost.rows:
            self._by_rows.learn(cost.rows, alone_ms, cost)
            self.rows_largest = max(self.rows_largest, cost.rows)
        if cost.bytes:
            self._by_bytes.learn(cost.bytes, alone_ms, cost)
            self.bytes_largest = max(self.bytes_largest, cost.bytes)

    def predict(self, rows: int | None, size_bytes: int | None, cores: float) -> Predicted | None:
        """The cost of a batch of this size alone; of any size, if neither count is known."""
        if not self.batches:
            return None
        chosen = self._choose(rows, size_bytes)
        if chosen is None:
            middle, core_ms = self._times.quantile(MIDDLE), self._core_times.quantile(MIDDLE)
            return Predicted(middle, max(self._times.quantile(HIGH), middle), core_ms)
        costs, size = chosen
        middle = costs.ms(size, cores) * self._correction()
        return Predicted(
            middle, self.high(middle), costs.core.line.at(size), costs.task.line.at(size)
        )

    def high(self, middle_ms: float) -> float:
        """A time that few batches of this middle exceed. Errors grow with the root of the time: a
        jitter of the fixed part does not scale up, one of the tasks does not stay the same."""
        error = self._errors.quantile(HIGH)
        return middle_ms + max(error, 0.0) * math.sqrt(max(middle_ms, 1.0))

    def middle_of_high(self, high_ms: float) -> float:
        """The middle whose high time is `high_ms`: the inverse of `high`."""
        error = max(self._errors.quantile(HIGH), 0.0)
        root = (math.sqrt(error * error + 4 * max(high_ms, 0.0)) - error) / 2
        return root * root

    def line_by_rows(self, cores: float) -> Line | None:
        """Time against rows at the median; None before a batch reported its rows."""
        return self._corrected(self._by_rows.line(cores)) if self._by_rows.core.values else None

    def line_by_bytes(self, cores: float) -> Line | None:
        """Time against bytes at the median; None before a batch reported its bytes."""
        return self._corrected(self._by_bytes.line(cores)) if self._by_bytes.core.values else None

    def task_line_by_rows(self) -> Line | None:
        """The longest task against rows; None before a batch reported its rows."""
        return self._by_rows.task.line if self._by_rows.core.values else None

    def task_line_by_bytes(self) -> Line | None:
        """The longest task against bytes; None before a batch reported its bytes."""
        return self._by_bytes.task.line if self._by_bytes.core.values else None

    def without_data_ms(self) -> float:
        """The median time of a batch without data; 0 while there was none."""
        return self._without_data.quantile(MIDDLE)

    def between_ms(self) -> float:
        """The median time of batches without data between two with data."""
        return self._between.quantile(MIDDLE)

    def usual_core_ms(self) -> float:
        """The median core-time from one batch with data to the next."""
        return self._core_times.quantile(MIDDLE) + self._core_between.quantile(MIDDLE)

    def usual_ms(self) -> float:
        """The median time of a batch with data; 0 before there was any."""
        return self._times.quantile(MIDDLE)

    def _correction(self) -> float:
        """The factor from the fitted lines, which are means, to the median of the last batches:
        times are skewed, and a young JVM gets faster sooner than lines follow."""
        if len(self._ratios) < RATIOS_MIN:
            return 1.0
        least, most = RATIO_BOUNDS
        return min(max(self._ratios.quantile(MIDDLE), least), most)

    def _corrected(self, line: Line) -> Line:
        factor = self._correction()
        return Line(line.fixed * factor, line.slope * factor)

    def _choose(self, rows: int | None, size_bytes: int | None) -> tuple[_CostBySize, float] | None:
        """The unit that is known now and was learned from; of two the one that has erred less."""
        options = [
            (costs, float(size))
            for costs, size in ((self._by_rows, rows), (self._by_bytes, size_bytes))
            if size is not None and costs.core.values
        ]
        return min(options, key=lambda option: option[0].error, default=None)
