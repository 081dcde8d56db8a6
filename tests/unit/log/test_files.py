"""Checkpoint files in the log: who may append them, which a marker may name, what is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lmdb
import msgspec
import pytest

from penstock.errors import BadCall, Fenced
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.reading.recovery import checkpoint_of, file_bytes
from penstock.log.store import probe
from penstock.model.answers import RecordedOffsets
from penstock.model.ids import BatchId, Instance, Lsn, QueryId
from penstock.model.marker import FileRef, Marker
from support.log.drafts import draft, files, make, mark, pending, rows, take
from support.log.state import State, refused

Q = QueryId("q")
STATE_FILE = "state/0/1/2_abc.changelog"


@pytest.fixture
def state() -> State:
    """A stream `s`, and a query `q` at instance 1 (entry 1)."""
    state = State()
    state.do(make())
    state.do(take())
    return state


def test_files_show_nothing_and_carry_whose_they_are(state: State) -> None:
    plan = state.do(files("offsets/0", STATE_FILE))
    assert plan.answer == (2, 3)
    assert not plan.showings
    head = plan.entries[1].head
    assert (head.kind, head.tags, head.path) == ("file", ("f/q",), STATE_FILE)
    assert (head.producer, head.instance, head.seq, head.rows) == ("q", 1, 0, 0)


def test_an_old_instance_and_an_unknown_query_cannot_append_files(state: State) -> None:
    state.do(take(run="r2"))
    assert refused(state, files("offsets/0"), Fenced, "its instance is 2") == "fenced"
    stranger = files("offsets/0", query="nobody")
    assert refused(state, stranger, BadCall, "take it over first") == "unknown_query"


def test_the_last_offsets_of_an_unmarked_batch_are_recorded(state: State) -> None:
    assert state.do(files("offsets/0")).offsets == (Q, 0, 2)
    assert state.do(files(STATE_FILE)).offsets is None
    assert state.do(files("offsets/0", "offsets/0")).offsets == (Q, 0, 5)
    state.do(mark(batch=0))
    assert state.do(files("offsets/0")).offsets is None, "a marked batch is not run again"
    assert state.do(files("offsets/1", batch=1)).offsets == (Q, 1, 8)


def test_offsets_are_appended_with_their_own_batch(state: State) -> None:
    operation = files(STATE_FILE, "offsets/1")
    assert refused(state, operation, BadCall, "offsets of batch 1, .* of batch 0") == "bad_request"
    assert state.do(files("offsets/1.crc", "state/offsets/1")).offsets is None


def test_a_marker_keeps_the_files_it_names(state: State) -> None:
    state.do(files("offsets/0", STATE_FILE))
    plan = state.do(mark(files={"offsets/0": 2, STATE_FILE: 3}))
    stored = msgspec.json.decode(plan.entries[0].payload, type=Marker)
    assert [(file.path, file.entry) for file in stored.files] == [("offsets/0", 2), (STATE_FILE, 3)]
    again = state.do(mark(files={"offsets/0": 2, STATE_FILE: 3}))
    assert (again.answer, again.changes) == (plan.answer, False)
    other = mark(files={"offsets/0": 2})
    assert refused(state, other, BadCall, "has another marker") == "already_marked"


@pytest.mark.parametrize(
    ("path", "entry", "fact"),
    [
        ("offsets/0", 99, "is not there"),
        ("offsets/0", 1, "is no file but of the kind 'take over'"),
        ("offsets/0", 6, "is no file but of the kind 'pending'"),
        ("offsets/0", 3, f"is the file {STATE_FILE}"),
        (STATE_FILE, 4, "is of batch 1 of the query 'q'"),
        (STATE_FILE, 5, "is of batch 0 of the query 'p'"),
    ],
)
def test_files_that_are_not_the_batch_s_own_are_refused(
    state: State, path: str, entry: int, fact: str
) -> None:
    state.do(files("offsets/0", STATE_FILE))
    state.do(files(STATE_FILE, batch=1))
    state.query_records[QueryId("p")] = msgspec.structs.replace(
        state.query_records[Q], query=QueryId("p")
    )
    state.do(files(STATE_FILE, query="p"))
    state.do(pending(draft(0, 1)))
    assert refused(state, mark(files={path: entry}), BadCall, fact) == "unknown_entries"


def test_a_path_is_named_once(state: State) -> None:
    state.do(files(STATE_FILE, STATE_FILE))
    twice = mark()
    refs = tuple(FileRef(files(STATE_FILE).files[0].path, Lsn(lsn)) for lsn in (2, 3))
    twice = type(twice)(msgspec.structs.replace(twice.marker, files=refs))
    assert refused(state, twice, BadCall, "is named twice") == "unknown_entries"


def test_files_of_an_earlier_instance_are_refused(state: State) -> None:
    state.do(files(STATE_FILE))
    state.do(take(run="r2"))
    operation = mark(instance=2, files={STATE_FILE: 2})
    assert refused(state, operation, BadCall, "appended by instance 1") == "unknown_entries"


def test_a_file_cannot_be_shown_as_rows(state: State) -> None:
    state.do(files(STATE_FILE))
    assert refused(state, mark(2), BadCall, "is the checkpoint file") == "unknown_entries"


def test_a_marker_written_before_there_were_files_names_none() -> None:
    old = b'{"query":"q","instance":1,"batch":0,"writes":[],"commit":null,"positions":{}}'
    assert msgspec.json.decode(old, type=Marker).files == ()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "data")
    log.run(make())
    log.run(take())
    yield log
    invariants.check(log)
    log.close()


def recorded(log: EmbeddedLog) -> RecordedOffsets | None:
    with log.reading() as view:
        return checkpoint_of(view, Q, None, 100, 1 << 20).offsets


def test_markers_come_in_order_a_page_at_a_time(log: EmbeddedLog) -> None:
    for batch in range(5):
        (lsn,) = log.run(files(STATE_FILE, batch=batch))
        log.run(mark(batch=batch, files={STATE_FILE: lsn}))
    with log.reading() as view:
        first = checkpoint_of(view, Q, None, 2, 1 << 20)
        assert [marker.batch for marker in first.markers] == [0, 1]
        assert first.more
        rest = checkpoint_of(view, Q, BatchId(1), 3, 1 << 20)
        assert [marker.batch for marker in rest.markers] == [2, 3, 4]
        assert not rest.more
        assert rest.markers[0].commit == "e30="
        assert file_bytes(view, Q, rest.markers[0].files[0].entry) == STATE_FILE.encode()
        with pytest.raises(BadCall, match="there is no query 'nobody'"):
            checkpoint_of(view, QueryId("nobody"), None, 2, 1 << 20)


def test_recorded_offsets_are_those_of_the_first_unmarked_batch(log: EmbeddedLog) -> None:
    assert recorded(log) is None
    log.run(files("offsets/0"))
    log.run(files("offsets/1", batch=1))
    assert recorded(log) == RecordedOffsets(BatchId(0), Lsn(2), Instance(1))
    log.run(take(run="r2"))
    (lsn,) = log.run(files("offsets/0", instance=2))
    assert recorded(log) == RecordedOffsets(BatchId(0), lsn, Instance(2))
    log.run(mark(instance=2, files={"offsets/0": lsn}))
    assert recorded(log) == RecordedOffsets(BatchId(1), Lsn(3), Instance(1))
    log.run(mark(instance=2, batch=1))
    assert recorded(log) is None


def test_a_query_whose_id_begins_with_another_s_keeps_its_own_offsets(log: EmbeddedLog) -> None:
    log.run(take("q2"))
    (lsn,) = log.run(files("offsets/7", query="q2", batch=7))
    assert recorded(log) is None
    log.run(mark(batch=9))
    with log.reading() as view:
        offsets = checkpoint_of(view, QueryId("q2"), None, 1, 1 << 20).offsets
    assert offsets == RecordedOffsets(BatchId(7), lsn, Instance(1))


def test_only_files_of_the_query_are_given_out(log: EmbeddedLog) -> None:
    (lsn,) = log.run(files(STATE_FILE))
    log.run(rows(draft(0, 1)))
    with log.reading() as view:
        for query, entry in (("p", lsn), ("q", 1), ("q", lsn + 1), ("q", 99)):
            with pytest.raises(BadCall) as caught:
                file_bytes(view, QueryId(query), Lsn(entry))
            assert (caught.value.code, caught.value.http_status) == ("unknown_entries", 404)


def test_a_folder_of_the_first_format_is_taken_and_says_the_new_one(tmp_path: Path) -> None:
    data = tmp_path / "old"
    log = EmbeddedLog.open(data)
    log.run(take())
    log.close()
    with lmdb.open(str(data / "log"), max_dbs=20) as env:
        offsets = env.open_db(b"offsets")
        with env.begin(write=True) as txn:
            txn.drop(offsets)
    (data / "format.json").write_text('{"format": 1}\n')
    assert probe.read_all(data / "log", 1 << 30) > 0, "a table that is not there is no damage"
    log = EmbeddedLog.open(data)
    log.run(files("offsets/0"))
    assert recorded(log) is not None
    log.close()
    assert (data / "format.json").read_text() == '{"format": 5}\n'
