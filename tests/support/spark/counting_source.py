"""A streaming source written in Python, which has two more numbers whenever it is asked."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType


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
