"""A suite as the harness and the command line see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from rich.console import Console

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.turns import Steps, Tell

P = TypeVar("P")
R = TypeVar("R")
Show: TypeAlias = Callable[[Console, P, Sequence[R], Sequence[Figure]], None]
Draw: TypeAlias = Callable[[P, Sequence[R], Sequence[Figure], Path], None]


@dataclass(frozen=True, kw_only=True)
class Suite(Generic[P, R]):
    """A suite: what is compared, at which cells, and what is made of it.

    A plan says all that figures depend on; the harness makes a record of every step of `runs`, and
    hands all of them to `figures`, `show` and `draw`.
    """

    name: str
    plan_of: Callable[..., P]
    """From the options of the command line; raises BadCall, with what there is, for a name that is
    not."""
    steps: Callable[[P], int]
    """How often it says what it is at, at most, unless a run is made once more."""
    runs: Callable[[P, Path, Tell], Steps[R]]
    """In a folder that is removed afterwards. The harness tells the words of every step; what a
    step has to tell while it is at it, the suite tells itself."""
    figures: Callable[[P, Sequence[R]], list[Figure]]
    settings: Callable[[P], dict[str, Any]]
    """The plan as it stands in the result file."""
    in_file: Callable[[R], dict[str, Any]]
    """A record as it stands in the result file."""
    show: Show[P, R]
    draw: Draw[P, R] | None = None
    profile: Callable[[P, Sequence[R]], dict[str, Any]] | None = None
    """What explains the figures, over all records, for the result file; there it is `profile`."""
    require: Callable[[P], None] = lambda plan: None
    """Raises BadCall if something is missing that the plan needs."""
    minutes: Callable[[P], float] | None = None
    """About how long it takes, where that is said beforehand."""
    is_right: Callable[[R], bool] = lambda record: True
    is_shown: Callable[[P, Sequence[R]], bool] = lambda plan, records: bool(records)
