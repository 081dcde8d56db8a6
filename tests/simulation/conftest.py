"""How many worlds are tried: few where quick answers are wanted, thousands otherwise."""

from __future__ import annotations

import pytest

QUICK = 40
ALL = 300


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    """The seeds of one kind of world. Whoever leaves Spark out wants an answer in seconds."""
    chosen: str = request.config.getoption("markexpr")
    return range(QUICK if "not spark" in chosen else ALL)
