"""How many worlds are tried: few where quick answers are wanted, thousands otherwise."""

from __future__ import annotations

import pytest

QUICK = 40
ALL = 200
LOG_QUICK = 25
LOG_ALL = 300
DEADLINES_QUICK = 60
DEADLINES_ALL = 1_000


@pytest.fixture
def is_quick(request: pytest.FixtureRequest) -> bool:
    """Whoever leaves Spark out wants an answer in seconds."""
    return "not spark" in request.config.getoption("markexpr")


@pytest.fixture
def seeds(is_quick: bool) -> range:
    """The seeds of one kind of world."""
    return range(QUICK if is_quick else ALL)


@pytest.fixture
def log_seeds(is_quick: bool) -> int:
    """How many seeds each kind of world of the log has to itself."""
    return LOG_QUICK if is_quick else LOG_ALL


@pytest.fixture
def deadline_seeds(is_quick: bool) -> range:
    """The seeds of small worlds with deadlines."""
    return range(DEADLINES_QUICK if is_quick else DEADLINES_ALL)


@pytest.fixture
def crowded_seeds(is_quick: bool) -> range:
    """The seeds of worlds that are each run twice for a tenth of a second of processor time: as
    many as take 20 s."""
    return range(10 if is_quick else 200)


@pytest.fixture
def few_seeds(is_quick: bool) -> range:
    """The seeds of worlds with deadlines that run for longer."""
    return range(10 if is_quick else 40)
