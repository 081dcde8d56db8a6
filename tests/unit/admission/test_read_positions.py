"""What the log keeps for a query, by its questions to admission."""

from __future__ import annotations

from penstock.admission.read_positions import HEARD_S, KEEP_S, Asker, ReadPositions
from penstock.log.operations import MovePosition
from penstock.model.ids import Instance, Lsn, QueryId, StreamName
from penstock.testing.clock import ManualClock

ASKER = Asker(QueryId("q"), Instance(1), StreamName("s"))


def kept(move: MovePosition | None) -> Lsn | None:
    assert move is not None
    return move.moves[0].position


def test_the_position_kept_is_that_of_two_batches_before() -> None:
    """Batch i + 1 is asked for while i is being committed; i - 2 is committed for certain.

    asks after   end 0    end 1    end 2    end 3
    committed                      0        1
    """
    clock = ManualClock()
    positions = ReadPositions(clock)
    positions.registered(ASKER, Lsn(10))
    clock.sleep(KEEP_S)
    assert positions.asked(ASKER, Lsn(20)) is None, "two positions are not enough to tell"
    assert kept(positions.asked(ASKER, Lsn(30))) == 10
    clock.sleep(KEEP_S)
    assert positions.asked(ASKER, Lsn(30)) is None, "nothing has moved"
    assert kept(positions.asked(ASKER, Lsn(40))) == 20


def test_moves_are_kept_now_and_then_only() -> None:
    clock = ManualClock()
    positions = ReadPositions(clock)
    positions.registered(ASKER, Lsn(0))
    asked = [positions.asked(ASKER, Lsn(at)) for at in range(1, 100)]
    assert asked == [None] * 99
    clock.sleep(KEEP_S)
    assert kept(positions.asked(ASKER, Lsn(100))) == 98


def test_a_quiet_query_is_heard_of_where_it_is() -> None:
    clock = ManualClock()
    positions = ReadPositions(clock)
    positions.registered(ASKER, Lsn(7))
    clock.sleep(HEARD_S)
    assert kept(positions.asked(ASKER, Lsn(7))) is None
    assert positions.asked(ASKER, Lsn(7)) is None, "once is enough"


def test_of_two_sources_over_one_stream_the_one_that_is_behind_counts() -> None:
    """Both ask before each batch, about positions of their own.

    first       10       20       30       40       40
    second      15       25       35       45       55
    """
    clock = ManualClock()
    positions = ReadPositions(clock)
    positions.registered(ASKER, Lsn(10))
    assert not positions.is_known(ASKER, 1)
    positions.registered(ASKER, Lsn(15), 1)
    clock.sleep(KEEP_S)
    for first, second in ((20, 25), (30, 35)):
        assert positions.asked(ASKER, Lsn(first)) is None, "one of them has not asked thrice"
        move = positions.asked(ASKER, Lsn(second), 1)
    assert kept(move) == 10
    clock.sleep(KEEP_S)
    assert kept(positions.asked(ASKER, Lsn(40))) == 15
    clock.sleep(KEEP_S)
    assert kept(positions.asked(ASKER, Lsn(45), 1)) == 20
    clock.sleep(KEEP_S)
    assert positions.asked(ASKER, Lsn(55), 1) is None, "the first is where it was"


def test_a_query_that_goes_back_and_a_new_run_begin_anew() -> None:
    clock = ManualClock()
    positions = ReadPositions(clock)
    positions.registered(ASKER, Lsn(10))
    positions.asked(ASKER, Lsn(20))
    positions.asked(ASKER, Lsn(5))
    clock.sleep(KEEP_S)
    assert positions.asked(ASKER, Lsn(20)) is None
    assert not positions.is_known(ASKER._replace(instance=Instance(2)))
