"""The embedded log against a model that fits on a page, with every invariant after every step."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from support.log.machine import LogAgainstModel

TestLogAgainstModel = LogAgainstModel.TestCase
TestLogAgainstModel.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
