"""Whether a job is started again, decided with a clock turned by hand."""

from __future__ import annotations

import pytest

from penstock.supervise.restarts import (
    Again,
    Bounds,
    Decision,
    Done,
    Ended,
    GiveUp,
    Restarts,
    last_kind,
)


def failed(at_s: float, *lines: str, code: int = 1) -> Ended:
    return Ended(code, lines, at_s)


def pause_of(decision: Decision) -> float:
    assert isinstance(decision, Again)
    return decision.after_s


def test_success_is_the_end() -> None:
    assert Restarts(Bounds()).decide(Ended(0, ("penstock.Fenced: no matter",), 0.0)) == Done()


def test_pauses_double_up_to_half_a_minute() -> None:
    policy = Restarts(Bounds())
    pauses = [pause_of(policy.decide(failed(at))) for at in range(10)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]


def test_one_failure_more_than_the_bound_gives_up_with_the_reason() -> None:
    policy = Restarts(Bounds(restarts_max=2, window_s=60))
    assert pause_of(policy.decide(failed(0))) == 1
    assert pause_of(policy.decide(failed(10))) == 2
    end = policy.decide(failed(20, code=-9))
    assert isinstance(end, GiveUp)
    assert end.reason == (
        "it failed 3 times within 60 s, the last time with signal 9, and 2 restarts are the bound"
    )
    assert end.act.startswith("whoever runs the job must mend")


def test_a_job_that_is_never_restarted_gives_up_at_once() -> None:
    assert isinstance(Restarts(Bounds(restarts_max=0)).decide(failed(0)), GiveUp)


def test_failures_before_the_window_count_no_more() -> None:
    """Failures at 0, 50, 105, 161 and 230 s; at most two count within any minute."""
    policy = Restarts(Bounds(restarts_max=2, window_s=60))
    pauses = [pause_of(policy.decide(failed(at))) for at in (0, 50, 105, 161, 230)]
    assert pauses == [1, 2, 2, 2, 1]


def test_a_restart_says_what_happened_and_which_it_is() -> None:
    first = Restarts(Bounds(restarts_max=5)).decide(failed(0, code=3))
    assert isinstance(first, Again)
    assert first.reason == "it ended with exit code 3; restart 1 of 5 within 600 s"


@pytest.mark.parametrize(
    ("line", "kind", "act"),
    [
        ("penstock.errors.Fenced: the query 'q' was taken over", "Fenced", "stop one of the two"),
        ("Caused by: penstock.BadCall: no stream [penstock: x]", "BadCall", "change the call"),
        ("ERROR: penstock.Damaged: the entry 4 is damaged", "Damaged", "restore the data"),
        ("[STREAM_FAILED] ... stop this run [penstock: fenced] SQLSTATE", "Fenced", "stop one"),
        ("... has commits up to 3 [penstock: checkpoint_behind]", "Damaged", "operator must"),
        ("there is no stream 'bids' [penstock: unknown_stream]", "BadCall", "change the call"),
        ("... use one checkpoint location [penstock: two_queries]", "BadCall", "change the call"),
    ],
)
def test_what_a_restart_cannot_mend_is_not_tried_again(line: str, kind: str, act: str) -> None:
    decision = Restarts(Bounds()).decide(failed(0, "Traceback", line, "  at frame"))
    assert isinstance(decision, GiveUp)
    assert decision.reason == (
        f"it ended with exit code 1 after a penstock.{kind}, which a restart cannot mend"
    )
    assert act in decision.act


@pytest.mark.parametrize(
    "lines",
    [
        ("ValueError: oh",),
        ("penstock.TryAgain: the server does not answer [penstock: unreachable]",),
        ("penstock.BadCall: overcome", "penstock.errors.TryAgain: the last one"),
        ("penstock.Fenced: overcome", "the queue is full [penstock: busy]"),
        ("my.penstock.Fenced: not ours",),
        ("somebody said penstock.Fenced and [penstock: made_up]",),
        ("penstock.Bug: report this [penstock: bug]",),
    ],
)
def test_everything_else_is_tried_again(lines: tuple[str, ...]) -> None:
    assert isinstance(Restarts(Bounds()).decide(failed(0, *lines)), Again)


def test_the_last_error_counts() -> None:
    assert last_kind(["penstock.TryAgain: a", "penstock.Fenced: b", "  at c"]) == "Fenced"
    assert last_kind(["penstock.Fenced: a. Caused by: penstock.TryAgain: b"]) == "TryAgain"
    assert last_kind([]) is None
