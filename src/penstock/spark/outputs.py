"""Several output streams of one query, made visible by one marker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from penstock.errors import BadCall
from penstock.spark.installed import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Outputs:
    """Data frames of one query and the streams they go to, one batch of all of them at a time.

        penstock.Outputs(hot=hot_items, alerts=alerts).writeStream.queryName("auctions").start()

    Readers of either stream see a batch when its marker is there, which covers both: never the rows
    of one without those of the other. Key and substreams of a stream that does not exist yet are
    options with its name before theirs: `.option("hot.key", "auction")`.

    The frames become one by a union, so each is computed by itself: a stateful part that two of
    them share is kept twice. To compute it once, make one frame with a struct column per stream,
    null where a row has nothing for it, and `.option("outputs", "hot,alerts")` of the format.
    """

    def __init__(self, frames: Mapping[str, DataFrame] | None = None, **named: DataFrame) -> None:
        need_pyspark()
        self._frames = {**(frames or {}), **named}
        if not self._frames:
            raise BadCall(
                "outputs need at least one stream: penstock.Outputs(hot=frame)", code="bad_request"
            )

    @property
    def frame(self) -> DataFrame:
        """One frame with a struct column per stream; of every row all but one are null."""
        return reduce(
            lambda above, below: above.unionByName(below), map(self._widened, self._frames)
        )

    @property
    def writeStream(self) -> DataStreamWriter:  # noqa: N802, Spark's own word
        """Spark's writer, with the format and the streams set."""
        writer = self.frame.writeStream.format("penstock")
        return writer.option("outputs", ",".join(self._frames))

    def _widened(self, name: str) -> DataFrame:
        from pyspark.sql import functions as f

        columns = [
            (
                f.struct(*[f.col(f"`{column}`") for column in frame.columns])
                if stream == name
                else f.lit(None).cast(frame.schema)
            ).alias(stream)
            for stream, frame in self._frames.items()
        ]
        return self._frames[name].select(*columns)
