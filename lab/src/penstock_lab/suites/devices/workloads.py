"""Workloads of the LMStream paper's Table III, each a query of ours."""

from __future__ import annotations

import msgspec

from penstock_lab.workloads.seeded import BASE_TIME_MS

MINUTE_MS = 60_000
FIRST_END_MS = 14_000
"""Event time from the first row to the first end of a window of a minute."""


class Workload(msgspec.Struct, frozen=True):
    """A workload by the paper's name."""

    name: str
    query: str
    slide_s: int | None
    """None: its windows do not overlap."""
    generator: dict[str, int] = {}
    """Options of its generator."""


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("LR1S", "lr_join_30_5", 5),
        Workload("LR1T", "lr_join_30_tumbling", None),
        Workload("LR2S", "lr_speed_30_10", 10),
        Workload("CM1S", "cm_category_60_10", 10),
        Workload(
            "CM1T",
            "cm_category_60_tumbling",
            None,
            # A window ends within a short run, so that there is an answer to check.
            {"base_time_ms": BASE_TIME_MS + MINUTE_MS - FIRST_END_MS},
        ),
        Workload("CM2S", "cm_job_60_5", 5),
    )
}
"""LR1 joins a stream with another and has no aggregate, so that nothing of it is planned today: its
batches take Spark's way in every mode, and only how they are cut differs."""
