"""How much of its own stream a coordinator keeps."""

from __future__ import annotations

from penstock.model.ids import Lsn
from penstock_lab.baselines.task_graph.protocols.transaction.own_stream import OwnStream


def appended(stream: OwnStream, *lsns: int) -> None:
    for lsn in lsns:
        stream.end(stream.begin(), Lsn(lsn))


def test_a_trim_is_due_after_so_many_steps_read_or_appended() -> None:
    stream, due = OwnStream(trim_every=3), list[bool]()
    stream.read(Lsn(1))
    appended(stream, 2)
    due.append(stream.is_due)
    stream.end(stream.begin(), None)  # it was not appended
    due.append(stream.is_due)
    appended(stream, 3)
    due.append(stream.is_due)
    stream.start_trim()
    due.append(stream.is_due)
    assert due == [False, False, True, False]


def test_what_is_needed_and_what_is_on_its_way_is_not_trimmed() -> None:
    stream = OwnStream()
    appended(stream, 4, 6)
    assert stream.until([]) == 6
    assert stream.until([Lsn(6), Lsn(5)]) == 4
    begun = stream.begin()
    appended(stream, 8)  # the one that is on its way may be at 7, and its answer late
    assert stream.until([]) == 6
    stream.end(begun, Lsn(7))
    assert stream.until([]) == 8


def test_what_stood_still_from_one_trim_to_the_next_is_to_be_said_anew() -> None:
    stream = OwnStream()
    appended(stream, 4)
    assert stream.start_trim() == 0
    appended(stream, 9)
    assert stream.start_trim() == 4
    assert stream.start_trim() == 9
