"""A Spark process's place in a suite: what it is asked to run, or why it cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Generic, Self, TypeVar

from penstock.errors import PenstockError

Bench = TypeVar("Bench")
Outcome = TypeVar("Outcome")


class ProcessSeat(Generic[Bench]):
    """A bench, or the reason why there is none: the suite goes on with the others."""

    def __init__(self, bench: Bench | None, error: str | None = None) -> None:
        self._bench = bench
        self._error = error
        self.is_warm = False
        """Only the first run of a process meets code that is not compiled yet."""

    @classmethod
    def taken(
        cls, closing: contextlib.ExitStack, opened: contextlib.AbstractContextManager[Bench]
    ) -> Self:
        """The seat of a process; that it does not start is a result too."""
        try:
            return cls(closing.enter_context(opened))
        except PenstockError as error:
            return cls(None, error.message)

    def _outcome(
        self, run: Callable[[Bench], Outcome], failed: Callable[[str | None], Outcome]
    ) -> Outcome:
        """The outcome of a run, also if there is no process or it cannot be replaced."""
        if self._bench is None:
            return failed(self._error)
        self.is_warm = True
        try:
            return run(self._bench)
        except PenstockError as error:
            self._bench, self._error = None, error.message
            return failed(error.message)
