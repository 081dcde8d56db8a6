"""Tables of what a stage has read and written, batch by batch, that DuckDB can be asked about.

Every input is a table of its stream's name: its rows up to the last committed batch, with `_batch`,
the batch that read them, and `_late_us`, the event time by which Spark dropped rows in that batch.
The output is `written`, with `_batch` and `_row`, its place in reading order. `batches` lists the
batches with their watermarks. Times are whole microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from penstock.client import Client, MarkerLine
from penstock_lab.oracle.watermarks import Marked, Progress, progress
from penstock_lab.queries import Stage


class Committed:
    """One stage's past, in a database of its own. Close it."""

    def __init__(
        self,
        client: Client,
        stage: Stage,
        query: str,
        streams: Mapping[str, str],
        tables: Mapping[str, pa.Table],
    ) -> None:
        self.stage = stage
        self._streams = streams
        self.base = duckdb.connect()
        # Timestamps are compared as numbers; nothing here may depend on the machine's zone.
        self.base.execute("set timezone = 'UTC'")
        self._markers = client.markers(query)
        reads = {name: self._read(client, name, streams.get(name, name)) for name in stage.reads}
        for name, rows in reads.items():
            self.base.register(f"read_{name}", rows)
        self.base.register("written", self._wrote(client, streams.get(stage.name, stage.name)))
        for name, table in tables.items():
            self.base.register(name, plain(table))
        self.batches = self._progress()
        self._show(reads)

    def close(self) -> None:
        self.base.close()

    def position(self, batch: int, stream: str) -> int:
        """The position up to which the batch had read a stream, by the stream's name in the log.

        A marker names the inputs its batch had rows of; the others stand where they were.
        """
        read = [marker.positions for marker in self._markers if marker.batch <= batch]
        return max((int(positions.get(stream, 0)) for positions in read), default=0)

    def unread(self, client: Client) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each input, by its name in the query, that no committed batch has read."""
        for name in self.stage.reads:
            stream = self._streams.get(name, name)
            ends = (int(marker.positions.get(stream, 0)) for marker in self._markers)
            yield name, _rows_after(client, stream, max(ends, default=0))

    def unmarked(self, client: Client) -> pa.Table:
        """The rows of the output that lie past the last marker."""
        stream = self._streams.get(self.stage.name, self.stage.name)
        return _rows_after(client, stream, self._markers[-1].lsn if self._markers else 0)

    def _read(self, client: Client, name: str, stream: str) -> pa.Table:
        ends = [int(marker.positions.get(stream, 0)) for marker in self._markers]
        return _pieces(client, stream, self._markers, ends)

    def _wrote(self, client: Client, stream: str) -> pa.Table:
        # All that lies between two markers counts as the later one's: what was not written by this
        # query then shows as rows that nobody expected.
        ends = [int(marker.lsn) for marker in self._markers]
        rows = _pieces(client, stream, self._markers, ends)
        return rows.append_column("_row", pa.array(range(rows.num_rows), pa.int64()))

    def _progress(self) -> list[Progress]:
        newest = []
        for watermark in self.stage.watermarks:
            latest = self.base.sql(
                f'select _batch, max("{watermark.column}") '
                f"from read_{watermark.stream} where {watermark.where} group by _batch"
            ).fetchall()
            newest.append({int(batch): int(at_us) for batch, at_us in latest})
        marked = [Marked(marker.batch, marker.lsn, marker.instance) for marker in self._markers]
        return progress(marked, self.stage.watermarks, newest)

    def _show(self, reads: Mapping[str, pa.Table]) -> None:
        columns = {
            name: pa.array([getattr(progress, name) for progress in self.batches], pa.int64())
            for name in Progress._fields
        }
        self.base.register("batches", pa.table(columns))
        for name, rows in reads.items():
            # Not joined in DuckDB: what unnests the rows of a small join fails in version 2.0.0, in
            # a cache of dictionaries, once record batches are small.
            places = pc.index_in(rows["_batch"], value_set=columns["batch"])
            late_us = pc.take(columns["late_us"], places)
            self.base.register(name, rows.append_column("_late_us", late_us))
        # The batch that closes what ends at a time; null while none has.
        self.base.execute(
            "create macro closed_in(end_us) as "
            "(select min(batch) from batches where watermark_us >= end_us)"
        )
        # The starts of all windows a time is in.
        self.base.execute(
            "create macro window_starts(at_us, range_us, slide_us) as unnest(range("
            "at_us - at_us % slide_us - range_us + slide_us, at_us + 1, slide_us))"
        )


def plain(table: pa.Table) -> pa.Table:
    """Timestamps as microseconds: compared as the numbers they are, in no time zone."""
    return pa.table(
        {
            name: column.cast(pa.int64()) if kinds.is_timestamp(column.type) else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def _rows_after(client: Client, stream: str, end: int) -> pa.Table:
    earliest, latest = (client.position(stream, at=at) for at in ("earliest", "latest"))
    # A marker whose batch wrote nothing may lie past the end of the stream.
    return plain(client.read(stream, min(max(end, earliest), latest), latest))


def _pieces(client: Client, stream: str, markers: list[MarkerLine], ends: list[int]) -> pa.Table:
    """The rows up to each of `ends`, one after the other, with the number of the marker's batch."""
    before, latest = (client.position(stream, at=at) for at in ("earliest", "latest"))
    pieces = []
    for marker, end in zip(markers, ends, strict=True):
        # A marker whose batch wrote nothing may lie past the end of the stream.
        end = max(min(end, latest), before)
        # Not every batch moves every stream on, and a request is not needed to know that.
        if end > before:
            rows = plain(client.read(stream, before, end))
            batch = pa.array([marker.batch] * rows.num_rows, pa.int64())
            pieces.append(rows.append_column("_batch", batch))
        before = end
    if pieces:
        return pa.concat_tables(pieces)
    empty = plain(client.schema(stream).empty_table())
    return empty.append_column("_batch", pa.array([], pa.int64()))
