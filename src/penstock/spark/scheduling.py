"""Scheduling settings: what puts the pool of queries with a deadline into Spark's scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.errors import BadCall
from penstock.settings import plugin

MODE_KEY = "spark.scheduler.mode"
ALLOCATION_KEY = "spark.scheduler.allocation.file"
ALLOCATION_FILE = Path(__file__).with_name("fairscheduler.xml")
SESSION_POLICY = "edf"


def schedule_settings(user_conf: Mapping[str, str], *, is_session: bool) -> dict[str, str]:
    """Settings to add to those the user has made, which stay.

    A session schedules by deadline unless the user has chosen a scheduler; `attach` does only on
    request. Raises BadCall for an order of ours without the mode of Spark's scheduler it needs.
    """
    policy = user_conf.get(plugin.SCHEDULE.name)
    mode = user_conf.get(MODE_KEY)
    if policy == plugin.SCHEDULE.default or (policy is None and not is_session):
        return {}
    if mode is not None and mode.upper() != "FAIR":
        if policy is None:
            return {}
        raise BadCall(
            f"{plugin.SCHEDULE.name} is {policy}, which needs a scheduler with pools, and "
            f"{MODE_KEY} is {mode}; set that to FAIR, or leave one of the two out",
            code="bad_setting",
        )
    settings = {plugin.SCHEDULE.name: policy or SESSION_POLICY}
    if mode is None:
        # Jobs outside the pool keep the order that they have without pools. Not a URI: Hadoop
        # takes a path as it is written, spaces included.
        settings |= {MODE_KEY: "FAIR", ALLOCATION_KEY: f"file:{ALLOCATION_FILE}"}
    return {key: value for key, value in settings.items() if key not in user_conf}
