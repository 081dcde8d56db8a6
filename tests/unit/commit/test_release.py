"""When what of a batch may become durable.

offsets/i  ->  state of i, every piece  ->  marker i  ->  commits/i  ->  offsets/i+1  -> ...
"""

from __future__ import annotations

import pytest

from penstock.commit.events import (
    CopyBatch,
    Delete,
    DeleteAsked,
    Effect,
    Event,
    Failed,
    PutCommit,
    PutMarker,
    PutOffsets,
    Stop,
    WriterLost,
)
from penstock.commit.release import Release
from support.release_vectors import commit, done, durable, in_location, in_log, offsets, written


def without_log(first: int = 0, *, recorded: bool = False) -> Release:
    return Release(first, recorded=recorded, with_log=False)


def with_log(first: int = 0, *, recorded: bool = False, behind: int = 8) -> Release:
    return Release(first, recorded=recorded, with_log=True, behind=behind)


def tell(release: Release, *events: Event) -> list[Effect]:
    """The effects of all events together, in order."""
    return [effect for event in events for effect in release.on(event)]


# The order.


def test_a_batch_is_released_in_order_without_a_log() -> None:
    release = without_log()
    assert release.on(offsets(0)) == [PutOffsets(0)]
    assert release.on(written(0, "0/0")) == []
    assert release.on(commit(0, "0/0")) == []
    assert release.on(done(PutOffsets(0))) == []
    assert release.on(durable(0, "0/0")) == [PutCommit(0)]
    assert release.committed == -1, "asked for is not done"
    assert release.on(done(PutCommit(0))) == []
    assert (release.released, release.committed, release.copied) == (0, 0, 0)
    assert release.is_idle()


def test_offsets_wait_for_the_commit_of_the_batch_before() -> None:
    release = without_log()
    effects = tell(release, *in_location(0)[:-1], offsets(1))
    assert PutOffsets(1) not in effects
    assert release.on(done(PutCommit(0))) == [PutOffsets(1)]


def test_offsets_wait_for_the_marker_of_the_batch_before() -> None:
    release = with_log()
    effects = tell(release, *in_log(0)[:-1], offsets(1))
    assert PutOffsets(1) not in effects
    assert release.on(done(PutMarker(0))) == [PutOffsets(1), CopyBatch(0)]


def test_a_batch_does_not_commit_before_its_offsets_are_durable() -> None:
    release = with_log()
    before = tell(release, offsets(0), written(0, "0/0"), durable(0, "0/0"), commit(0, "0/0"))
    assert before == [PutOffsets(0)]
    assert release.on(done(PutOffsets(0))) == [PutMarker(0)]


def test_nothing_is_asked_for_twice() -> None:
    release = without_log()
    assert tell(release, offsets(0), offsets(0)) == [PutOffsets(0)]


def test_an_answer_given_twice_changes_nothing() -> None:
    release = without_log()
    tell(release, *in_location(0), offsets(1), done(PutOffsets(1)))
    assert tell(release, done(PutOffsets(0)), done(PutCommit(0))) == []
    assert (release.released, release.committed) == (1, 0)


def test_recorded_offsets_are_released_already() -> None:
    release = without_log(4, recorded=True)
    assert release.may_make_durable(4, is_large=False)
    assert tell(release, written(4, "0/4"), durable(4, "0/4"), commit(4, "0/4")) == [PutCommit(4)]


def test_offsets_that_were_not_recorded_are_asked_for() -> None:
    release = without_log(4)
    assert not release.may_make_durable(4, is_large=False)
    assert release.on(offsets(4)) == [PutOffsets(4)]


# State.


@pytest.mark.parametrize("missing", ["0/0", "1/0", "2/0"])
def test_the_commit_waits_for_every_piece(missing: str) -> None:
    release = without_log()
    pieces = ("0/0", "1/0", "2/0")
    acks = [durable(0, piece) for piece in pieces if piece != missing]
    before = tell(release, offsets(0), done(PutOffsets(0)), *acks, commit(0, *pieces))
    assert PutCommit(0) not in before
    assert release.on(durable(0, missing)) == [PutCommit(0)]


def test_state_stays_with_its_writer_until_the_offsets_are_durable() -> None:
    release = without_log()
    release.on(offsets(0))
    assert not release.may_make_durable(0, is_large=False)
    release.on(done(PutOffsets(0)))
    assert release.may_make_durable(0, is_large=False)
    assert not release.may_make_durable(1, is_large=False)


def test_what_is_written_of_a_batch_is_held_until_it_is_durable() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)))
    assert not release.is_held(0)
    tell(release, written(0, "0/0"), written(0, "1/0", "b"))
    assert release.is_held(0)
    release.on(durable(0, "0/0"))
    assert release.is_held(0)
    release.on(WriterLost("b"))
    assert not release.is_held(0)
    assert release.has_lost(0)


def test_state_may_enter_the_log_at_any_time() -> None:
    assert with_log().may_make_durable(7, is_large=False)


def test_state_that_is_too_large_for_the_log_waits_for_the_offsets() -> None:
    release = with_log()
    release.on(offsets(0))
    assert not release.may_make_durable(0, is_large=True)
    release.on(done(PutOffsets(0)))
    assert release.may_make_durable(0, is_large=True)


def test_an_ack_of_a_superseded_write_does_not_count() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), written(0, "0/0"), written(0, "0/0", "a", 2))
    assert tell(release, commit(0, "0/0"), durable(0, "0/0", "a", 1)) == []
    assert release.on(durable(0, "0/0", "a", 2)) == [PutCommit(0)]


def test_a_durable_piece_that_is_written_again_is_waited_for_again() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), written(0, "0/0"), durable(0, "0/0"))
    assert tell(release, written(0, "0/0", "a", 2), commit(0, "0/0")) == []
    assert release.on(durable(0, "0/0", "a", 2)) == [PutCommit(0)]


def test_acks_may_come_twice_and_in_any_order() -> None:
    """writer:  written 1 .. written 2 .. durable 2
    told:    durable 2 .. written 2 .. written 1 .. durable 1 .. written 2
    """
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), durable(0, "0/0", "a", 2))
    late = [written(0, "0/0", "a", 2), written(0, "0/0", "a", 1), durable(0, "0/0", "a", 1)]
    assert tell(release, *late, written(0, "0/0", "a", 2)) == []
    assert release.on(commit(0, "0/0")) == [PutCommit(0)]


def test_a_repeated_first_write_does_not_hide_the_second() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), written(0, "0/0", "a", 2), written(0, "0/0"))
    assert tell(release, commit(0, "0/0"), durable(0, "0/0")) == []


def test_another_writer_of_the_same_path_is_waited_for() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), written(0, "0/0", "b"), durable(0, "0/0", "a"))
    assert release.on(commit(0, "0/0")) == []
    assert release.on(durable(0, "0/0", "b")) == [PutCommit(0)]


def test_a_piece_that_is_not_required_is_not_waited_for() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), written(0, "0/0_lost"), durable(0, "0/0_won"))
    assert release.on(commit(0, "0/0_won")) == [PutCommit(0)]


def test_the_marker_can_name_the_writes_that_count() -> None:
    release = with_log()
    tell(release, offsets(0), done(PutOffsets(0)), durable(0, "0/0", "b", 2), durable(0, "1/0"))
    assert release.on(commit(0, "0/0", "1/0")) == [PutMarker(0)]
    assert release.durable_writes(0) == {"0/0": ("b", 2), "1/0": ("a", 1)}


def test_word_of_a_committed_batch_is_ignored() -> None:
    release = without_log()
    tell(release, *in_location(0))
    assert tell(release, written(0, "0/0", "b"), durable(0, "0/0", "b")) == []
    assert release.is_idle()


# Writers that are lost.


def held_by_two(release: Release) -> None:
    tell(release, offsets(0), done(PutOffsets(0)), written(0, "0/0"), written(0, "1/0", "b"))


def stopped_for(piece: str, effects: list[Effect]) -> bool:
    match effects:
        case [Stop(reason)]:
            return f"({piece})" in reason and "restarted" in reason
    return False


def test_a_writer_lost_with_a_required_piece_stops_the_query() -> None:
    release = without_log()
    held_by_two(release)
    release.on(commit(0, "0/0", "1/0"))
    assert stopped_for("1/0", release.on(WriterLost("b")))
    assert release.is_lost(0, "1/0")
    assert not release.is_lost(0, "0/0")


def test_a_writer_lost_before_the_commit_stops_it_when_it_comes() -> None:
    release = without_log()
    held_by_two(release)
    assert release.on(WriterLost("b")) == []
    assert stopped_for("1/0", release.on(commit(0, "0/0", "1/0")))


def test_a_lost_piece_may_be_written_again_elsewhere() -> None:
    release = without_log()
    held_by_two(release)
    tell(release, WriterLost("b"), written(0, "1/0", "c"), durable(0, "0/0"))
    assert release.on(commit(0, "0/0", "1/0")) == []
    assert release.on(durable(0, "1/0", "c")) == [PutCommit(0)]


def test_a_lost_writer_is_not_missed_if_its_pieces_are_durable() -> None:
    release = without_log()
    held_by_two(release)
    tell(release, durable(0, "0/0"), durable(0, "1/0", "b"), WriterLost("b"))
    assert release.on(commit(0, "0/0", "1/0")) == [PutCommit(0)]


def test_an_ack_that_outlives_its_writer_counts() -> None:
    release = without_log()
    held_by_two(release)
    tell(release, durable(0, "0/0"), WriterLost("b"), durable(0, "1/0", "b"))
    assert release.on(commit(0, "0/0", "1/0")) == [PutCommit(0)]


def test_a_write_told_of_after_its_writer_was_lost_is_lost() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), WriterLost("b"), written(0, "1/0", "b"))
    assert stopped_for("1/0", release.on(commit(0, "1/0")))


def test_a_piece_nobody_was_told_of_counts_as_lost_with_a_writer() -> None:
    release = without_log()
    tell(release, offsets(0), done(PutOffsets(0)), WriterLost("b"))
    assert stopped_for("1/0", release.on(commit(0, "1/0")))


def test_a_piece_nobody_was_told_of_is_waited_for_while_no_writer_is_lost() -> None:
    release = without_log()
    tell(release, *in_location(0), WriterLost("b"), *in_location(1), *in_location(2)[:2])
    assert release.on(commit(2)) == [PutCommit(2)]
    tell(release, done(PutCommit(2)), *in_location(3)[:2])
    assert release.on(commit(3, "0/3")) == []
    assert release.on(durable(3, "0/3")) == [PutCommit(3)]


def test_a_writer_lost_after_the_commit_was_asked_for_stops_nothing() -> None:
    release = without_log()
    tell(release, *in_location(0)[:-1], written(0, "0/0", "a", 2))
    assert release.on(WriterLost("a")) == []
    assert release.on(done(PutCommit(0))) == []
    assert release.committed == 0


# How far ahead, and how far behind.


def test_one_batch_computes_while_the_one_before_it_is_being_made_durable() -> None:
    release = without_log()
    assert release.may_compute(1)
    assert not release.may_compute(2)
    tell(release, *in_location(0))
    assert release.may_compute(2)
    assert not release.may_compute(3)


def test_the_location_is_behind_the_log_only_so_far() -> None:
    release = with_log(behind=1)
    tell(release, *in_log(0), *in_log(1), *in_log(2))
    assert (release.committed, release.copied) == (2, -1)
    assert not release.may_compute(3)
    release.on(done(CopyBatch(0)))
    assert release.may_compute(3)
    assert not release.may_compute(4)


def test_batches_are_copied_one_at_a_time_in_order() -> None:
    release = with_log()
    effects = tell(release, *in_log(0), *in_log(1))
    assert [effect for effect in effects if isinstance(effect, CopyBatch)] == [CopyBatch(0)]
    assert release.on(done(CopyBatch(0))) == [CopyBatch(1)]
    assert not release.is_idle()
    assert release.on(done(CopyBatch(1))) == []
    assert release.is_idle()


def test_a_snapshot_enters_the_location_after_its_batch() -> None:
    release = with_log()
    tell(release, *in_log(0))
    assert not release.may_show_snapshot(0, is_required=False)
    release.on(done(CopyBatch(0)))
    assert release.may_show_snapshot(0, is_required=False)
    assert not release.may_show_snapshot(1, is_required=False)


def test_a_snapshot_that_its_batch_waits_for_enters_the_location_after_the_offsets() -> None:
    release = with_log()
    release.on(offsets(0))
    assert not release.may_show_snapshot(0, is_required=True)
    release.on(done(PutOffsets(0)))
    assert release.may_show_snapshot(0, is_required=True)
    assert not release.may_show_snapshot(1, is_required=True)


# Deletes.


def test_a_delete_waits_until_what_was_held_is_in_the_location() -> None:
    release = without_log()
    tell(release, *in_location(0), *in_location(1)[:-1], offsets(2))
    assert release.on(DeleteAsked("offsets/0")) == []
    assert release.on(done(PutCommit(1))) == [PutOffsets(2), Delete("offsets/0")]


def test_a_delete_waits_for_the_copy_and_not_only_for_the_marker() -> None:
    release = with_log()
    tell(release, *in_log(0), *in_log(1))
    assert tell(release, DeleteAsked("offsets/0"), done(CopyBatch(0))) == [CopyBatch(1)]
    assert release.on(done(CopyBatch(1))) == [Delete("offsets/0")]


def test_deletes_keep_their_order() -> None:
    release = without_log()
    tell(release, *in_location(0)[:-1], DeleteAsked("offsets/0"), DeleteAsked("commits/0"))
    assert release.on(done(PutCommit(0))) == [Delete("offsets/0"), Delete("commits/0")]
    assert not release.is_idle()
    tell(release, done(Delete("offsets/0")), done(Delete("commits/0")))
    assert release.is_idle()


# The end.


def test_what_cannot_be_done_stops_the_query_for_good() -> None:
    release = with_log()
    tell(release, *in_log(0)[:-1])
    assert release.on(Failed(PutMarker(0), "taken over")) == [Stop("taken over")]
    assert release.stopped == "taken over"
    assert tell(release, done(PutMarker(0)), offsets(1), WriterLost("a")) == []
    assert release.committed == -1


# What is waited for.


def test_what_the_next_commit_lacks_is_named_with_who_holds_it() -> None:
    release = without_log()
    assert release.awaited() == ["offsets/0, from Spark"]
    tell(release, offsets(0))
    assert release.awaited() == ["offsets/0"]
    tell(release, done(PutOffsets(0)), written(0, "0/0", "b"), written(0, "0/0", "a"))
    assert release.awaited() == ["commits/0, from Spark"]
    tell(release, commit(0, "0/0", "1/0"))
    assert release.awaited() == [
        "state 0/0 of batch 0, held by a, b",
        "state 1/0 of batch 0, which no executor has written",
    ]
    tell(release, durable(0, "1/0", "b"), durable(0, "0/0", "b"), durable(0, "0/0", "a"))
    assert release.awaited() == ["commits/0"]


def test_what_follows_a_commit_is_named_beside_the_next_one() -> None:
    release = with_log()
    tell(release, *in_log(0), offsets(1))
    assert release.awaited() == ["offsets/1", "the copy of batch 0"]
    tell(release, done(PutOffsets(1)), commit(1), done(CopyBatch(0)), DeleteAsked("offsets/0"))
    assert release.awaited() == ["the marker of batch 1"]
