"""Files that a query has read and written, told as the log would: batch by batch.

The oracle asks a client for markers and for the rows between positions. Spark's own logs hold the
same: `offsets` and `sources` of the checkpoint say which files a batch read, the sink's metadata
which it wrote. A position here is a number of entries of such a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from penstock.client import MarkerLine
from penstock.model.ids import BatchId, Instance, Lsn
from penstock_lab.experiment.outside_reader import METADATA, sink_files
from penstock_lab.queries import Query, Stage

SCHEME = "file://"


class FilesPast:
    """The past of a query that has stopped, under the folder it was run in.

    For queries of one stage: what lies between two stages would have a position of either kind.
    """

    def __init__(self, folder: Path, query: Query, schemas: Mapping[str, pa.Schema]) -> None:
        self._rows = folder / "rows"
        self._stage: Stage = query.stages[-1]
        self._checkpoint = folder / "checkpoints" / self._stage.name
        self._schemas = schemas
        self._read = self._files_read()
        self._written = self._files_written()

    def markers(self, query: str, after_batch: int | None = None) -> list[MarkerLine]:
        committed = sorted(int(file.name) for file in (self._checkpoint / "commits").glob("[0-9]*"))
        return [
            MarkerLine(
                Lsn(batch + 1),
                BatchId(batch),
                Instance(1),
                0,
                {stream: Lsn(position) for stream, position in self._positions(batch).items()},
                "append",
                0,
            )
            for batch in committed
        ]

    def position(self, stream: str, *, at: str | None = None) -> int:
        return 0

    def schema(self, stream: str) -> pa.Schema:
        return self._schemas[stream]

    def read(self, stream: str, after: int, until: int) -> pa.Table:
        entries = self._written if stream == self._stage.name else self._read[stream]
        files = [path for entry in range(after, until) for path in entries.get(entry, ())]
        if not files:
            return self.schema(stream).empty_table()
        return pa.concat_tables([micros(pq.read_table(path)) for path in files])

    def _sources(self) -> dict[int, str]:
        """The stream behind each source of the checkpoint; Spark numbers them as it likes."""
        streams = {}
        for source in (self._checkpoint / "sources").iterdir():
            for entry in _entries(source):
                for line in _lines(entry):
                    streams[int(source.name)] = Path(line["path"]).parent.name
        return streams

    def _files_read(self) -> dict[str, dict[int, list[str]]]:
        files_read: dict[str, dict[int, list[str]]] = {name: {} for name in self._stage.reads}
        for number, stream in self._sources().items():
            named = {
                line["path"]: int(line["batchId"])
                for entry in _entries(self._checkpoint / "sources" / str(number))
                for line in _lines(entry)
            }
            for path, batch in named.items():
                files_read[stream].setdefault(batch, []).append(path.removeprefix(SCHEME))
        return files_read

    def _files_written(self) -> dict[int, list[str]]:
        files_written: dict[int, list[str]] = {}
        known: set[str] = set()
        batch = 0
        while (files := sink_files(self._rows / self._stage.name, batch)) is not None:
            files_written[batch] = [path for path in files if path not in known]
            known.update(files)
            batch += 1
        return files_written

    def _positions(self, batch: int) -> dict[str, int]:
        # The first two lines are the format's version and what the batch was planned with.
        offsets = (self._checkpoint / "offsets" / str(batch)).read_bytes().splitlines()[2:]
        positions = dict.fromkeys(self._stage.reads, 0)
        for number, stream in self._sources().items():
            if offsets[number] != b"-":
                positions[stream] = int(msgspec.json.decode(offsets[number])["logOffset"]) + 1
        return positions


def is_committed(folder: Path, stage: str) -> bool:
    """Whether the commit log of a stage has what its sink shows; our commits follow behind."""
    shown = [_batch_of(entry) for entry in _entries(folder / "rows" / stage / METADATA)]
    commits = folder / "checkpoints" / stage / "commits"
    return not shown or (commits / str(max(shown))).exists()


def micros(table: pa.Table) -> pa.Table:
    """Timestamps as the log has them; Spark's Parquet files have nanoseconds."""
    fields = [
        pa.field(field.name, pa.timestamp("us", "UTC")) if kinds.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _entries(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.name.split(".")[0].isdigit()]


def _batch_of(entry: Path) -> int:
    return int(entry.name.split(".")[0])


def _lines(entry: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in entry.read_bytes().splitlines()[1:]]
