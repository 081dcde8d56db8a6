"""Operations with texts and numbers around every bound: accepted, or refused by a sentence."""

from __future__ import annotations

import zlib
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadCall, Fenced, PenstockError, TryAgain
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.decide.records import TAGS_MAX
from penstock.log.operations import (
    AlterStream,
    AppendRecord,
    DeleteQuery,
    DeleteStream,
    ForgetConsumer,
    Mark,
    Move,
    MovePosition,
    Operation,
    Reclaim,
    Register,
    ResetQuery,
    SetAux,
    SweepStream,
    Trimmed,
    TrimQuery,
    TrimStream,
    TrimTag,
)
from penstock.log.state import Retention
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, StreamName
from penstock.model.marker import FileRef, Marker, Snapshot, SnapshotFile
from penstock.settings.server import Settings
from support.log.drafts import SCHEMA, draft, files, make, pending, rows, stamp, take
from support.log.stream_server import Server, published

LENGTHS = (0, 1, 199, 200, 201, 310, 311, 502, 503, 510, 511, 512, 2_000)
FOLDERS = ("default", "n" * 100, "n" * 289, "n" * 290, "n" * 470)
NUMBERS = (0, 1, (1 << 63) - 1)
TAG_COUNTS = (0, 1, TAGS_MAX, TAGS_MAX + 1)
FILE_PLACE, ZIP_PLACE, PENDING_PLACE, RECORD_PLACE = 3, 4, 5, 8
FIRST_STREAM = 1


class Drawn(msgspec.Struct):
    """Parts of a life; those that are not drawn are short, and accepted."""

    query: str = "q"
    run: str = "r"
    stream: str = "s"
    name: str = "n"
    producer: str = "p"
    position: str = "s"
    tag: str = "a"
    tag_count: int = 1
    aux_place: int = RECORD_PLACE
    aux_bytes: int = 1
    column: str = "c"
    folder: str = "default"
    number: int = 0
    file_place: int = FILE_PLACE
    steps_max: int | None = None
    has_column: bool = True
    substreams: int | None = 3
    is_sure: bool = True
    swept_stream: int = FIRST_STREAM
    sweep_entries_max: int = 1


def life(drawn: Drawn) -> list[Operation]:
    """The life of one query, stream and consumer. Each operation is one message, so its entry has
    the place of its number."""
    query, stream, number = QueryId(drawn.query), StreamName(drawn.stream), drawn.number
    schema = pa.schema([*SCHEMA, pa.field(drawn.column, pa.int64())]).serialize().to_pybytes()
    change_log = f"state/0/0/{drawn.folder}/1.changelog"
    whole = f"state/0/0/{drawn.folder}/{number + 1}_ab.zip"
    return [
        make(stream),
        take(query, drawn.run),
        files(change_log, query=query, batch=number),
        files(whole, query=query, batch=number),
        pending(draft(0, 1), stream=stream, by=stamp(query, batch=number)),
        Mark(marker(drawn, change_log, whole), BatchId(number)),
        rows(draft(0, 1), stream=stream, producer=drawn.producer, sequence=number),
        AppendRecord(
            (drawn.tag, *(f"t{n}" for n in range(1, drawn.tag_count)))[: drawn.tag_count],
            b"x",
            None,
            drawn.producer,
            None,
            number,
        ),
        SetAux(Lsn(drawn.aux_place), b"x" * drawn.aux_bytes),
        TrimTag(drawn.tag, Lsn(number)),
        Register("group", drawn.name, stream, Lsn(0)),
        MovePosition("group", drawn.name, (Move(stream, Lsn(number)),)),
        AlterStream(
            stream,
            schema if drawn.has_column else None,
            drawn.substreams,
            Retention(number or None, number or None),
        ),
        TrimStream(stream, Lsn(number), number, Lsn(number), number),
        ForgetConsumer("group", drawn.name, stream if drawn.is_sure else None),
        Reclaim(query, (Lsn(PENDING_PLACE), Lsn(FILE_PLACE), Lsn(number))),
        TrimQuery(query, BatchId(number)),
        ResetQuery(query, f"again {drawn.run}", drawn.steps_max),
        DeleteQuery(query, drawn.is_sure, None, drawn.steps_max),
        DeleteStream(stream, drawn.is_sure),
        SweepStream(drawn.swept_stream, drawn.sweep_entries_max),
    ]


def marker(drawn: Drawn, change_log: str, whole: str) -> Marker:
    """A marker that names a change log, and a snapshot of the same batch."""
    data = whole.encode()
    in_zip = SnapshotFile(FilePath(whole), (Lsn(ZIP_PLACE),), len(data), zlib.crc32(data))
    return Marker(
        QueryId(drawn.query),
        Instance(1),
        BatchId(drawn.number),
        (),
        "e30=",
        {drawn.position: Lsn(drawn.number)},
        "append",
        (FileRef(FilePath(change_log), Lsn(drawn.file_place)),),
        (Snapshot(f"state/0/0/{drawn.folder}", BatchId(drawn.number), (in_zip,)),),
    )


def texts() -> st.SearchStrategy[str]:
    return st.builds(
        lambda length, letter: (letter * length)[: length if letter.isascii() else length // 2],
        st.sampled_from(LENGTHS),
        st.sampled_from(["a", "é", "/", "\x00", "\x01"]),
    )


@st.composite
def operations_at_bounds(draw: st.DrawFn) -> list[Operation]:
    """A life with some of its texts at the bounds, in its order or in any other."""
    fields = ("query", "run", "stream", "name", "producer", "position", "tag", "column")
    far = draw(st.sets(st.sampled_from(fields), max_size=len(fields)))
    drawn = Drawn(
        **{field: draw(texts()) for field in sorted(far)},
        folder=draw(st.sampled_from(FOLDERS)),
        number=draw(st.sampled_from(NUMBERS)),
        file_place=draw(st.sampled_from((FILE_PLACE, 1))),
        steps_max=draw(st.sampled_from((None, 1, 1_000))),
        has_column=draw(st.booleans()),
        substreams=draw(st.sampled_from((None, 1, 3))),
        is_sure=draw(st.booleans()),
        tag_count=draw(st.sampled_from(TAG_COUNTS)),
        aux_place=draw(st.sampled_from((RECORD_PLACE, FILE_PLACE, *NUMBERS))),
        aux_bytes=draw(st.sampled_from(LENGTHS)),
        swept_stream=draw(st.sampled_from((FIRST_STREAM, *NUMBERS))),
        sweep_entries_max=draw(st.sampled_from(NUMBERS)),
    )
    operations = life(drawn)
    return operations if draw(st.booleans()) else draw(st.permutations(operations))


class AlignedLog:
    """A log of its own whose entries have the places that messages of a stream have: a place then
    means the same in both."""

    def __init__(self, folder: Path) -> None:
        self._log = EmbeddedLog.open(folder, Settings(map_bytes=1 << 26))
        self._messages = 0

    def run(self, operation: Operation) -> Any:
        """The answer, or the refusal."""
        try:
            answer: Any = self._log.run(operation)
        except PenstockError as refusal:
            answer = refusal
        self._messages += len(published(operation))
        if self._last < self._messages:
            while self._last < self._messages:
                self._log.run(AppendRecord(("fill",), b""))
            # A place of a message that left no entry holds none here, either.
            self._log.run(TrimTag("fill", Lsn(self._last)))
        return answer

    @property
    def _last(self) -> int:
        with self._log.reading() as view:
            return int(view.next_lsn) - 1

    def close(self) -> None:
        self._log.close()


def check_operations(operations: list[Operation]) -> None:
    """Each is accepted or refused by a sentence, by both logs alike, and both still take others."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        alone, server = AlignedLog(folder / "data"), Server(folder)
        stack.callback(alone.close)
        stack.callback(server.env.close)
        answers = server.apply(published(*operations, AppendRecord(("last",), b"x")))
        assert not isinstance(answers[len(operations) + 1], PenstockError)
        for number, operation in enumerate(operations, 1):
            answer = alone.run(operation)
            for outcome in (answer, answers[number]):
                assert not isinstance(outcome, PenstockError) or isinstance(
                    outcome, BadCall | TryAgain | Fenced
                ), f"{operation}: {outcome}"
            assert type(answer) is type(answers[number]), (
                f"{operation}: {answer}, {answers[number]}"
            )


@settings(max_examples=40)
@given(operations_at_bounds())
def test_texts_of_every_length_are_accepted_or_refused_by_a_sentence_and_never_a_fault(
    operations: list[Operation],
) -> None:
    check_operations(operations)


def test_the_life_that_is_fuzzed_is_one_that_both_logs_take(tmp_path: Path) -> None:
    """A fuzz of operations that are all refused would show nothing."""
    operations = life(Drawn())
    alone, server = AlignedLog(tmp_path / "data"), Server(tmp_path)
    answers = server.apply(published(*operations))
    for number, operation in enumerate(operations, 1):
        for answer in (alone.run(operation), answers[number]):
            assert not isinstance(answer, PenstockError), f"{operation}: {answer}"
    assert isinstance(answers[len(operations)], Trimmed)
    assert answers[len(operations)].entries > 0, "the stream that was deleted is swept"
    alone.close()
    server.env.close()
