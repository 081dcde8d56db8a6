"""Does a run count? Decided here and nowhere else, from what was noted while it ran.

A run that does not count is shown with the reason and enters no figure: neither its time nor the
mean of the others may hide that something was wrong.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from penstock_lab.workloads.sending import LAG_MS_P99_MAX

Kind: TypeAlias = Literal["ok", "failed", "wrong", "stalled", "void: late generator"]


class Limits(msgspec.Struct, frozen=True):
    """From where on a run does not count."""

    stall_ms: float
    """Longest time without a new result."""
    lag_ms_p99: float = LAG_MS_P99_MAX
    """How late the sender may be."""


class Evidence(msgspec.Struct, frozen=True):
    """Facts noted about a run, by which it is judged."""

    results: int
    """Rows seen that count for latency."""
    longest_gap_ms: float
    lag_ms_p99: float
    rows_checked: int = 0
    rows_different: int = 0
    is_drained: bool = True
    """Whether everything sent was worked off in time after the last send."""
    error: str | None = None
    """Why the query or the sender ended by itself, if it did."""


class Verdict(msgspec.Struct, frozen=True):
    """The gravest finding, and every finding as a sentence."""

    kind: Kind
    reasons: tuple[str, ...] = ()

    @property
    def is_counted(self) -> bool:
        return self.kind == "ok"

    def __str__(self) -> str:
        return self.kind if not self.reasons else f"{self.kind}: {'; '.join(self.reasons)}"


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """A wrong answer is the gravest: it is reported whatever else went wrong."""
    findings: list[tuple[Kind, str]] = []
    if evidence.rows_different:
        findings.append(
            ("wrong", f"{evidence.rows_different} of {evidence.rows_checked} rows checked differ")
        )
    if evidence.error is not None:
        findings.append(("failed", evidence.error))
    if evidence.error is None and not evidence.rows_different:
        findings += [("stalled", why) for why in _stalls(evidence, limits)]
    if evidence.lag_ms_p99 > limits.lag_ms_p99:
        findings.append(
            (
                "void: late generator",
                (
                    f"the sender's lag p99 is {evidence.lag_ms_p99:.0f} ms, "
                    f"over {limits.lag_ms_p99:g} ms"
                ),
            )
        )
    if not findings:
        return Verdict("ok")
    return Verdict(findings[0][0], tuple(why for _, why in findings))


def _stalls(evidence: Evidence, limits: Limits) -> list[str]:
    if not evidence.results:
        return ["no result was seen"]
    if not evidence.is_drained:
        return ["what was sent had not been worked off in time"]
    if evidence.longest_gap_ms > limits.stall_ms:
        gap_s, bound_s = evidence.longest_gap_ms / 1000, limits.stall_ms / 1000
        return [f"no new result for {gap_s:.1f} s, over {bound_s:g} s"]
    return []
