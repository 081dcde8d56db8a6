"""New histories in every run: models and simulations with seeds nobody has tried, for a set time.

The other tests try the same histories each time, so that a failure there is a change of the code.
A failure here prints its seed: run this file with PENSTOCK_EXPLORE_SEED=N to try that seed alone,
and with PENSTOCK_EXPLORE_SECONDS=N to look longer.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from hypothesis.strategies import integers

from property.test_admission_waits import QUERY_HISTORIES, check_waits
from property.test_maintenance_model import UpkeepAgainstModel
from property.test_snapshot_model import SnapshotModel
from simulation.deadlines.checks import checked
from simulation.log.world import simulate_log
from simulation.release.world import simulate
from support.log.machine import LogAgainstModel
from unit.eviction.test_least_time import Store
from unit.log.test_fuzzed_operations import check_operations, operations_at_bounds

SECONDS_QUICK = 1.0
SECONDS = 8.0
SEED_VARIABLE = "PENSTOCK_EXPLORE_SEED"
HISTORIES = settings(
    max_examples=5,
    stateful_step_count=50,
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def model(machine: type[RuleBasedStateMachine]) -> Callable[[int], object]:
    def histories_of(number: int) -> None:
        # A class of its own, since the seed is kept on the class.
        run_state_machine_as_test(
            with_seed(number)(type("Fresh", (machine,), {})), settings=HISTORIES
        )

    return histories_of


def waits(number: int) -> None:
    """The decisions of admission for histories of one query, drawn with this seed."""
    HISTORIES(with_seed(number)(QUERY_HISTORIES(check_waits)))()


def bounds(number: int) -> None:
    """Operations with texts and numbers around every bound, drawn with this seed."""
    HISTORIES(with_seed(number)(given(operations_at_bounds())(check_operations)))()


def deadline_worlds(number: int) -> None:
    """The two kinds of world whose checks hold for every seed, not only for most."""
    checked("any", number)
    checked("at once", number)


EXPLORED: dict[str, Callable[[int], object]] = {
    "log": model(LogAgainstModel),
    "maintenance": model(UpkeepAgainstModel),
    "snapshots": model(SnapshotModel),
    "simulated commits": simulate,
    "simulated logs": simulate_log,
    "simulated deadlines": deadline_worlds,
    "admission waits": waits,
    "least times of stores": model(Store),
    "operations at bounds": bounds,
}


def seeds(seconds: float) -> Iterator[int]:
    """The seed that was asked for, or new ones until the time is over; always at least one."""
    asked = os.environ.get(SEED_VARIABLE)
    if asked is not None:
        yield int(asked)
        return
    end = time.monotonic() + seconds
    yield secrets.randbits(32)
    while time.monotonic() < end:
        yield secrets.randbits(32)


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    is_quick = "not spark" in request.config.getoption("markexpr")
    given = os.environ.get("PENSTOCK_EXPLORE_SECONDS")
    return float(given) if given is not None else SECONDS_QUICK if is_quick else SECONDS


def explore(histories_of: Callable[[int], object], seconds: float) -> None:
    for number in seeds(seconds):
        try:
            histories_of(number)
        except BaseException as failure:
            failure.add_note(f"to try it again: {SEED_VARIABLE}={number} pytest {__file__}")
            raise


@pytest.mark.parametrize("subject", EXPLORED)
def test_no_new_history_breaks_an_invariant(subject: str, seconds: float) -> None:
    explore(EXPLORED[subject], seconds)


class Numbers(RuleBasedStateMachine):
    """Remembers what was drawn, and holds until a large number comes."""

    drawn: ClassVar[list[int]] = []

    @rule(number=integers(0, 1_000))
    def draw(self, number: int) -> None:
        self.drawn.append(number)
        assert number < 990


def test_a_broken_history_is_found_and_its_seed_finds_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    with pytest.raises(AssertionError) as raised:
        explore(model(Numbers), 60.0)
    (note,) = (line for line in raised.value.__notes__ if SEED_VARIABLE in line)
    number = int(note.partition("=")[2].split()[0])
    histories = []
    for _ in range(2):
        Numbers.drawn.clear()
        with pytest.raises(AssertionError):
            model(Numbers)(number)
        histories.append(Numbers.drawn[:])
    assert histories[0] == histories[1]
