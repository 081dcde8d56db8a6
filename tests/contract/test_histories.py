"""Generated histories of several clients on each backend, checked against a model."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from contract.at_once import AtOnce
from contract.conftest import Opening


def test_every_history_is_one_the_model_allows(
    opening: Opening, request: pytest.FixtureRequest
) -> None:
    machine = type("Machine", (AtOnce,), {"opening": staticmethod(opening)})
    is_embedded = "embedded" in request.node.name
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40 if is_embedded else 20,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
