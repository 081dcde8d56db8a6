"""Modes of the devices suite: when batches are cut, and where their operations run.

All modes run in one Spark process and one server, with the same commit and the same state; they
differ in a policy of admission and in settings of the session for their query.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from penstock_lab.experiment.together import Part
from penstock_lab.suites.devices.workloads import Workload

DEVICES = "spark.penstock.devices"
POLICY = f"{DEVICES}.policy"
EXPAND = f"{DEVICES}.expand"
GPU_WORKERS = f"{DEVICES}.gpuWorkers"
TRIGGER_S = 10.0
Cutting: TypeAlias = Literal["trigger", "windows", "asap"]
"""Every 10 s; by the paper's rule for the windows of the query; as soon as there is data."""


class Mode(msgspec.Struct, frozen=True):
    """A mode by its name in figures."""

    name: str
    words: str
    policy: str
    """Of devices: which one an operation is planned for."""
    cutting: Cutting = "windows"
    devices: str = "auto"
    """`spark`: nothing is planned. Spark makes a row for every window of a row, on the CPU."""
    is_expanding: bool = False
    """Whether workers make a row for every window of a row, too, instead of panes."""

    @property
    def conf(self) -> dict[str, str]:
        """Settings of the session while its query is started, by which modes differ."""
        expand = "true" if self.is_expanding else "false"
        return {DEVICES: self.devices, POLICY: self.policy, EXPAND: expand}

    def conf_on(self, cores: int) -> dict[str, str]:
        """The same on so many cores, each of whose workers may be at the GPU: a task that cannot
        have it would run on the CPU, whatever the mode."""
        return self.conf | {GPU_WORKERS: str(cores)}

    def part(self, workload: Workload, cores: int) -> Part:
        """The query of a workload in this mode."""
        return Part(workload.query, 0.0, self.options(workload), conf=self.conf_on(cores))

    def options(self, workload: Workload) -> dict[str, str]:
        """Options of the query's source: when its batches are cut."""
        if self.cutting == "trigger":
            return {"policy": "fixed", "interval": f"{TRIGGER_S:g}s"}
        if self.cutting == "asap":
            return {"policy": "asap"}
        if workload.slide_s is None:
            return {"policy": "running-mean"}
        return {"policy": "slide", "slide": f"{workload.slide_s}s"}


THROUGHPUT_ORIENTED, THROUGHPUT_PANES = "throughput-oriented", "throughput-panes"
THROUGHPUT_SPARK = "throughput-spark"
STATIC, LMSTREAM, OURS, ASAP = "static", "lmstream", "ours", "ours-asap"
OURS_COLUMNAR = "ours-columnar"
MODES = {
    mode.name: mode
    for mode in (
        Mode(THROUGHPUT_SPARK, "every 10 s, as Spark has it: on the CPU, a row for every window",
             "ours", "trigger", "spark"),
        Mode(THROUGHPUT_ORIENTED, "every 10 s, all on the GPU, a row for every window", "all-gpu",
             "trigger", is_expanding=True),
        Mode(THROUGHPUT_PANES, "every 10 s, all on the GPU, by panes", "all-gpu", "trigger"),
        Mode(STATIC, "cut by its windows, devices by a fixed table", "static"),
        Mode(LMSTREAM, "cut by its windows, devices as in LMStream", "lmstream"),
        Mode(OURS_COLUMNAR, "cut by its windows, devices by what was measured, never Spark's paths",
             "ours-columnar"),
        Mode(OURS, "cut by its windows, paths and devices by what was measured", "ours"),
        Mode(ASAP, "cut as soon as there is data, paths and devices by what was measured", "ours",
             "asap"),
    )
}  # fmt: skip
# Ours comes last in the first repeat: it knows a machine by what the others have measured there.
QUICK_MODES = (THROUGHPUT_ORIENTED, THROUGHPUT_PANES, STATIC, LMSTREAM, OURS_COLUMNAR, OURS)
LARGE_ONLY = (THROUGHPUT_PANES, STATIC, OURS_COLUMNAR)
"""Modes that differ from another one in what becomes of rows once a batch is cut: a quick plan has
them only where partitions are large enough for that to show."""
BASELINE = THROUGHPUT_ORIENTED
"""The mode that latencies and rates are held against, as in the paper."""
SEARCHED = (BASELINE, OURS)
"""Modes whose highest rates are compared."""
OWN = (OURS_COLUMNAR, OURS, ASAP)
"""Modes of ours: one that falls behind is no lower bound, it does not count."""
PLANNED = (LMSTREAM, OURS_COLUMNAR, OURS)
"""Modes whose planning and learning is held against batch time."""
