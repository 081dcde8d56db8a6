"""The stage below the shuffle in one batch: its tasks, and the time that its parts take."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from penstock.fit.line import Line
from penstock.model.device_plans import BatchToPlan, Device, PipelineBody

GPU_COPIES = 4
"""The memory that a task needs on a GPU, in sizes of its input."""


class Ms(NamedTuple):
    """A time of a stage: as a clock on the wall would have it, summed over tasks, and that of its
    largest task."""

    wall: float
    summed: float
    longest: float = 0.0

    def plus(self, other: Ms) -> Ms:
        return Ms(*(mine + its for mine, its in zip(self, other, strict=True)))

    def times(self, factor: float) -> Ms:
        return Ms(*(factor * each for each in self))


NO_TIME = Ms(0.0, 0.0)


class StageSize(msgspec.Struct, frozen=True):
    """The stage of a batch: its tasks, how many cores run them, and how many of the tasks that run
    at once may have a GPU. `gpu_parts` is how often a task is split so that it fits into the memory
    of one."""

    tasks: int
    bytes: int
    largest_bytes: int
    cores: int
    gpu_lanes: int = 1
    gpu_parts: int = 1

    @property
    def at_once(self) -> int:
        """The tasks that run at once."""
        return max(min(self.cores, self.tasks), 1)

    @property
    def is_bounded(self) -> bool:
        """Whether some of the tasks that run at once cannot have a GPU, and use the CPU."""
        return self.gpu_lanes < self.at_once

    def time(self, line: Line, share: float = 1.0, device: Device = "cpu") -> Ms:
        """The time of one part of the work, of which `share` of the batch's bytes goes in, where
        every task has the device: as long as its largest task, or as all of it takes on the cores
        that there are."""
        fixed_ms = line.fixed * (self.gpu_parts if device == "gpu" else 1)
        summed_ms = self.tasks * fixed_ms + line.slope * share * self.bytes
        longest_ms = fixed_ms + line.slope * share * self.largest_bytes
        return Ms(max(longest_ms, summed_ms / self.at_once), summed_ms, longest_ms)

    def gpu_share(self, on_cpu: Ms, on_gpu: Ms) -> float:
        """The share of tasks that have a GPU where others use the CPU: of one round that of the
        bound; of several more on the faster device, as a core that is free takes the next task."""
        if not self.is_bounded:
            return 1.0
        bound = self.gpu_lanes / self.at_once
        if self.tasks <= self.cores:
            return bound
        on_gpus, on_cores = bound * on_cpu.wall, (1.0 - bound) * on_gpu.wall
        return on_gpus / (on_gpus + on_cores) if on_gpus + on_cores else bound

    def mixed(self, on_cpu: Ms, on_gpu: Ms) -> Ms:
        """The time of work planned for a GPU, some of whose tasks use the CPU: it ends with the
        last of them, wherever that is, and the largest may be on either."""
        if not self.is_bounded or not math.isfinite(on_gpu.wall):
            return on_gpu
        bound, share = self.gpu_lanes / self.at_once, self.gpu_share(on_cpu, on_gpu)
        longest_ms = max(on_cpu.longest, on_gpu.longest)
        gpus_ms, cores_ms = (
            on_gpu.wall * share / bound,
            on_cpu.wall * (1.0 - share) / (1.0 - bound),
        )
        summed_ms = share * on_gpu.summed + (1.0 - share) * on_cpu.summed
        return Ms(max(gpus_ms, cores_ms, longest_ms), summed_ms, longest_ms)


def stage_size(pipeline: PipelineBody, batch: BatchToPlan) -> StageSize:
    """The stage of a batch on the machines of its pipeline. Of a query that insists on the GPU a
    task that cannot have it fails: none of them is on the CPU."""
    sizes = batch.bytes_by_task or (0,)
    cores = max(batch.cores, 1)
    gpus = sum(machine.gpus * machine.count for machine in pipeline.machines)
    memories = [machine.gpu_bytes for machine in pipeline.machines if machine.gpu_bytes]
    room = min(memories, default=None)
    needed = GPU_COPIES * max(sizes) * pipeline.gpu_workers
    return StageSize(
        tasks=len(sizes),
        bytes=sum(sizes),
        largest_bytes=max(sizes),
        cores=cores,
        gpu_lanes=cores if pipeline.devices == "gpu" else max(gpus * pipeline.gpu_workers, 1),
        gpu_parts=1 if room is None else max(math.ceil(needed / room), 1),
    )
