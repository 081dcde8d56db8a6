"""Sentences that say why the controller of prefetching has switched, as its Scala twin has them."""

from __future__ import annotations

from collections.abc import Sequence


def first(candidate: str, misses: int, batch: int) -> str:
    """The reason for the first candidate ever."""
    return (
        f"{misses} reads of batch {batch} missed the cache: {candidate} hints, the earliest of the "
        "candidates"
    )


def discarded(candidate: str, unused: int, total: int, percent_max: int) -> str:
    """The reason for which a candidate is discarded."""
    return (
        f"{unused} of {total} entries fetched for hints of {candidate} were never read, and "
        f"{percent_max} % may be: {candidate} and all before it are discarded for good"
    )


def in_time(candidate: str, slack_us: int, access_us: int, margin_us: int) -> str:
    """The reason for the latest candidate with enough slack."""
    return (
        f"{candidate} is the latest whose slack for 99 % of rows, {ms(slack_us)}, covers p99 of "
        f"access, {ms(access_us)}, and a margin of {ms(margin_us)}"
    )


def too_late(candidate: str, access_us: int, margin_us: int) -> str:
    """The reason for the earliest candidate where none has enough slack."""
    return (
        f"no slack for 99 % of rows covers p99 of access, {ms(access_us)}, and a margin of "
        f"{ms(margin_us)}: {candidate} is the earliest of the rest"
    )


def unmeasured(candidate: str) -> str:
    """The reason for a candidate as long as times are not known."""
    return f"too few batches have been timed: {candidate} is the earliest of the rest"


def offered(candidates: Sequence[str]) -> str:
    """The reason for a change of the plan."""
    return f"the candidates in the plan are now {' '.join(candidates) or 'none'}"


def nothing_left() -> str:
    """The reason for which nothing is hinted any more."""
    return "no candidate is left"


def joined(*parts: str) -> str:
    """One sentence of several reasons; empty ones are left out."""
    return "; ".join(part for part in parts if part)


def ms(microseconds: int) -> str:
    """Milliseconds with one decimal, cut off."""
    return f"{microseconds // 1000}.{microseconds % 1000 // 100} ms"
