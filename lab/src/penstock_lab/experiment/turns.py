"""Turns of the systems; a run whose sender was late is made once more.

The runs of a suite are a generator. It yields a step, and is sent the record that the step's
measurement gave; what it has opened it closes in its own `with` and `finally`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock_lab.experiment.record import Measured

T = TypeVar("T")
R = TypeVar("R")
M = TypeVar("M", bound=Measured[Any])
LATE = "void: late generator"


@dataclass(frozen=True)
class Step(Generic[R]):
    """One measurement to make; its words are told beforehand, unless it has none."""

    words: str | None
    measure: Callable[[], R]


Tell: TypeAlias = Callable[[str], None]
"""Called with what is about to run, once per run."""
Steps: TypeAlias = Generator[Step[R], R, None]
"""The runs of a suite."""


def rotated(systems: tuple[T, ...], shift: int) -> tuple[T, ...]:
    """The systems from another one on, so that they take turns in who goes first."""
    start = shift % len(systems)
    return (*systems[start:], *systems[:start])


def alternated(systems: tuple[T, ...], turn: int) -> tuple[T, ...]:
    """The systems as they are, and in every other turn from the last to the first."""
    return systems[::-1] if turn % 2 else systems


class Retries:
    """The runs of a suite that may be made once more: how many, and until when.

    Bounded, so that a busy machine does not make the whole take for ever.
    """

    def __init__(self, most: int, until_s: float | None = None, clock: Clock = SYSTEM_CLOCK):
        self._left = most
        self._clock = clock
        self._until_s = None if until_s is None else clock.monotonic_s() + until_s

    def take(self) -> bool:
        is_over = self._until_s is not None and self._clock.monotonic_s() >= self._until_s
        if self._left <= 0 or is_over:
            return False
        self._left -= 1
        return True


def with_retry(
    words: str, measure: Callable[[], M], again: Callable[[], M], retries: Retries
) -> Generator[Step[M], M, M]:
    """A run, and `again` if its sender was late: the machine's doing, not the system's."""
    record = yield Step(words, measure)
    if record.run.verdict.kind == LATE and retries.take():
        record = yield Step(None, again)
    return record
