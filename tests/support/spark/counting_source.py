"""Streaming sources written in Python: one counts how often it is asked, one takes a limit."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

NUMBERS = 20
ROWS_MAX = 4


class Numbers(InputPartition):
    """The numbers of one batch: from `first` on, before `end`."""

    def __init__(self, first: int, end: int) -> None:
        self.first = first
        self.end = end


class CountingReader(DataSourceStreamReader):
    """Counts how often it was asked how far it could be read."""

    def __init__(self) -> None:
        self.asked = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark names it so
        return {"n": 0}

    # Spark takes this form too, without start and limit: such a source can be held, not cut.
    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        self.asked += 1
        return {"n": 2 * self.asked}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [Numbers(start["n"], end["n"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        assert isinstance(partition, Numbers)
        return iter([(n,) for n in range(partition.first, partition.end)])


class CountingSource(DataSource):
    """`format("counting")`."""

    @classmethod
    def name(cls) -> str:
        return "counting"

    def schema(self) -> str:
        return "n bigint"

    def streamReader(self, schema: StructType) -> CountingReader:  # noqa: N802 - Spark names it so
        return CountingReader()


class LimitedReader(CountingReader):
    """A reader of NUMBERS numbers, which gives a batch ROWS_MAX of them unless told less."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark names it so
        return ReadMaxRows(ROWS_MAX)

    def latestOffset(  # type: ignore[override]  # noqa: N802 - Spark names it so
        self, start: dict[str, int], limit: ReadLimit
    ) -> dict[str, int]:
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else NUMBERS
        return {"n": min(start["n"] + rows, NUMBERS)}


class LimitedSource(CountingSource):
    """`format("limited")`."""

    @classmethod
    def name(cls) -> str:
        return "limited"

    def streamReader(self, schema: StructType) -> LimitedReader:  # noqa: N802 - Spark names it so
        return LimitedReader()
