"""A run that does not count says so, and says why."""

from __future__ import annotations

import msgspec
import pytest

from penstock_lab.experiment.verdict import Evidence, Limits, judge

GOOD = Evidence(results=100, longest_gap_ms=900.0, lag_ms_p99=4.0, rows_checked=100)
LIMITS = Limits(stall_ms=5_000)


def test_a_good_run_counts() -> None:
    assert judge(GOOD, LIMITS).is_counted


@pytest.mark.parametrize(
    ("planted", "kind", "said"),
    [
        ({"rows_different": 1}, "wrong", "1 of 100 rows checked differ"),
        ({"lag_ms_p99": 20.1}, "void: late generator", "lag p99 is 20 ms, over 20 ms"),
        ({"longest_gap_ms": 5_001.0}, "stalled", "no new result for 5.0 s, over 5 s"),
        ({"results": 0}, "stalled", "no result was seen"),
        ({"is_drained": False}, "stalled", "not been worked off in time"),
        ({"error": "q1 has ended"}, "failed", "q1 has ended"),
    ],
)
def test_each_fault_is_reported_as_what_it_is(
    planted: dict[str, object], kind: str, said: str
) -> None:
    verdict = judge(msgspec.structs.replace(GOOD, **planted), LIMITS)
    assert verdict.kind == kind
    assert said in str(verdict)
    assert not verdict.is_counted


def test_a_bound_that_is_just_kept_counts() -> None:
    edge = msgspec.structs.replace(GOOD, lag_ms_p99=20.0, longest_gap_ms=5_000.0)
    assert judge(edge, LIMITS).is_counted


def test_a_wrong_answer_is_not_hidden_by_a_late_sender() -> None:
    both = msgspec.structs.replace(GOOD, rows_different=3, lag_ms_p99=90.0)
    verdict = judge(both, LIMITS)
    assert verdict.kind == "wrong"
    assert len(verdict.reasons) == 2
