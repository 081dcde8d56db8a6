"""Terms of a query: its deadline, the policy that keeps it, and when they make no sense."""

from __future__ import annotations

from enum import StrEnum

import msgspec

DEADLINE_MS_MAX = 24 * 3_600_000.0
IMPORTANCE_MAX = 1_000.0


class PolicyName(StrEnum):
    """The policies by the name a user gives."""

    ASAP = "asap"
    FIXED = "fixed"
    ZSTREAM = "zstream"
    SLIDE = "slide"
    RUNNING_MEAN = "running-mean"
    DEADLINE = "deadline"
    AUTO = "auto"


class CountedFrom(StrEnum):
    """The moment from which a row's latency counts: its arrival in the input stream, or the first
    arrival of the rows that it was made from."""

    ARRIVAL = "arrival"
    ORIGIN = "origin"


class Terms(msgspec.Struct, frozen=True):
    """A query's own terms. `interval_ms` is for `fixed`, `slide_ms` for `slide`; `importance` says
    who gives way when not everything fits, the lower one first."""

    deadline_ms: float | None = None
    policy: PolicyName = PolicyName.ASAP
    interval_ms: float | None = None
    slide_ms: float | None = None
    importance: float = 1.0
    origin: CountedFrom = CountedFrom.ARRIVAL


NEEDS_DEADLINE = {PolicyName.DEADLINE, PolicyName.ZSTREAM}


def terms_problem(terms: Terms) -> str | None:
    """A sentence that says why these terms cannot be kept and what to change; None if they can."""
    durations = {
        "deadline": terms.deadline_ms,
        "interval": terms.interval_ms,
        "slide": terms.slide_ms,
    }
    for name, duration_ms in durations.items():
        if duration_ms is not None and not 0 < duration_ms <= DEADLINE_MS_MAX:
            return (
                f"the {name} is {duration_ms:g} ms; give one above 0 and of "
                f"{DEADLINE_MS_MAX:.0f} ms at most, such as '800ms' or '2s'"
            )
    if not 0 < terms.importance <= IMPORTANCE_MAX:
        return (
            f"the importance is {terms.importance:g}; give a number above 0 and of "
            f"{IMPORTANCE_MAX:g} at most"
        )
    if terms.policy in NEEDS_DEADLINE and terms.deadline_ms is None:
        return f"policy '{terms.policy}' needs a deadline; set the option 'deadline'"
    if terms.policy is PolicyName.FIXED and terms.interval_ms is None:
        return "policy 'fixed' needs an interval; set the option 'interval'"
    if terms.policy is PolicyName.SLIDE and terms.slide_ms is None:
        return (
            "policy 'slide' needs the slide of a window: the query has no sliding window(), so set "
            "the option 'slide', or choose policy 'running-mean'"
        )
    return None
