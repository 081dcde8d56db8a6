"""The plan of one batch: a path, a device for each operation, what it is expected to take, and why.

Pure: the batch, the costs as they are known and what is to be probed go in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from penstock.devices.components import GPU_REFUSES, device_taken
from penstock.devices.costs import QueryCosts
from penstock.devices.mapping import OperationDevice, gpu_absence
from penstock.devices.policies import lmstream, one_device, static
from penstock.devices.policies.ours import (
    SplitTable,
    cheapest_split,
    expected_ms,
    map_devices,
    split_table,
    split_time,
)
from penstock.devices.stage_time import Ms, StageSize, stage_size
from penstock.fit.line import Line
from penstock.model.device_plans import (
    BatchPlan,
    BatchToPlan,
    Device,
    DeviceChoice,
    OperationKind,
    PathName,
    PipelineBody,
    PlannedOperation,
)

UNMEASURED_FACTOR = 1.25
"""A path that no batch has taken on these machines counts as this much dearer than it is thought to
be: its cost is the one we ship."""
PROBE_MARGIN = 0.25
"""The share of its time by which a probe may take longer than it is thought to."""
UNTRIED_MARGIN = 1.0
"""The same for a way of which not all was measured."""

Way = Literal["spark", "panes", "cpu", "gpu", "split"]
"""A path, and of the columnar one the devices: one of them alone, or both."""


class PlannedWay(msgspec.Struct, frozen=True):
    """One way to run a batch: its path, its time and its devices, with the reasons of a policy that
    has its own; those of ours are found once a way is taken. `is_measured` is said of its path,
    `is_tried` of each of its operations on its device, too."""

    way: Way
    path: PathName
    time: Ms
    devices: tuple[Device, ...] = ()
    reasons: tuple[str, ...] = ()
    is_measured: bool = True
    is_tried: bool = True

    @property
    def reckoned_ms(self) -> float:
        """The time on the wall that it is compared by."""
        return self.time.wall * (1.0 if self.is_measured else UNMEASURED_FACTOR)

    @property
    def margin_ms(self) -> float:
        """The time that a batch must be able to spare besides, to be run like this as a probe."""
        return self.time.wall * (PROBE_MARGIN if self.is_tried else UNTRIED_MARGIN)


def pipeline_problem(pipeline: PipelineBody) -> str | None:
    """A sentence that says why a pipeline cannot be run as its query wants, and what to change."""
    if pipeline.devices != "gpu":
        return None
    wanted = "devices are set to gpu for this query"
    if "columnar" not in pipeline.paths:
        return (
            f"{wanted}, and it has no part that can run there: its operations were left to "
            "Spark; see the notes of its plan, or set auto"
        )
    refused = GPU_REFUSES.intersection(each.kind for each in pipeline.operations)
    if refused:
        kinds = ", ".join(sorted(refused))
        return f"{wanted}, and a GPU does not take {kinds}, which stays on the CPU; set auto"
    absence = gpu_absence(pipeline.machines)
    if absence is not None:
        return f"{wanted}, and {absence}; give every machine one, or set auto"
    return None


class Planning(msgspec.Struct, frozen=True):
    """A batch while it is planned: its pipeline, the size of its stage, the times of its parts.
    `shipped_factor` is how much longer than by the costs we ship the usual way takes here: what was
    not measured is thought to do so, too."""

    pipeline: PipelineBody
    size: StageSize
    costs: QueryCosts
    table: SplitTable
    absence: str | None
    shipped_factor: float

    @staticmethod
    def of(
        pipeline: PipelineBody,
        batch: BatchToPlan,
        costs: QueryCosts,
        gpu_left_out: str | None = None,
    ) -> Planning:
        """`gpu_left_out` is why the GPU counts as absent though machines have one."""
        size, absence = stage_size(pipeline, batch), gpu_absence(pipeline.machines) or gpu_left_out
        factor = costs.shipped_factor(size)
        table = split_table(costs, size, has_gpu=absence is None, shipped_factor=factor)
        return Planning(pipeline, size, costs, table, absence, factor)

    def through_spark(self, path: PathName) -> PlannedWay:
        way: Way = "panes" if path == "panes" else "spark"
        is_measured = self.costs.is_measured(path)
        time = self._path_time(self.costs.path(path), is_measured=is_measured)
        return PlannedWay(way, path, time, is_measured=is_measured, is_tried=is_measured)

    def columnar(self, devices: Sequence[Device], reasons: Sequence[str] = ()) -> PlannedWay:
        """The columnar path with these devices."""
        is_measured = self.costs.is_measured("columnar")
        to_worker = self._path_time(self.costs.worker(), is_measured=is_measured)
        used = list(enumerate(devices))
        if self.size.is_bounded:
            used += enumerate(self.table.all_on_cpu())
        is_tried = is_measured and all(
            self.costs.is_operation_measured(index, device) for index, device in used
        )
        return PlannedWay(
            _way(devices),
            "columnar",
            to_worker.plus(split_time(self.table, devices)),
            tuple(devices),
            tuple(reasons),
            is_measured,
            is_tried,
        )

    @property
    def bound_words(self) -> str:
        """The end of a reason, where a bound on workers keeps some tasks from a GPU; else empty."""
        is_told = self.absence is None and "columnar" in self.pipeline.paths
        if not self.size.is_bounded or not is_told:
            return ""
        lanes, at_once = self.size.gpu_lanes, self.size.at_once
        bound = f"gpuWorkers is {self.pipeline.gpu_workers}"
        return f"; {lanes} of {at_once} tasks at a time may have a GPU ({bound})"

    def _path_time(self, line: Line, *, is_measured: bool) -> Ms:
        time = self.size.time(line)
        return time if is_measured else time.times(self.shipped_factor)

    def on_one_device(self, device: Device) -> PlannedWay:
        """The columnar path with all on one device, but for what that does not take."""
        return self.columnar([device_taken(kind, device) for kind in self.costs.kinds])

    def ways(self) -> dict[Way, PlannedWay]:
        """All ways that `ours` chooses from, and those that it may probe; for `ours-columnar` only
        those in workers, where there are any."""
        paths = self.pipeline.paths
        is_held = self.pipeline.policy == "ours-columnar" and "columnar" in paths
        through_spark = () if is_held else tuple(path for path in paths if path != "columnar")
        ways: list[PlannedWay] = [self.through_spark(path) for path in through_spark]
        if "columnar" in self.pipeline.paths:
            ways.append(self.columnar(cheapest_split(self.table)))
            ways.append(self.on_one_device("cpu"))
            if self.absence is None and not GPU_REFUSES.intersection(self.costs.kinds):
                ways.append(self.on_one_device("gpu"))
        return {planned.way: planned for planned in ways}

    def by_policy(self, inflection_bytes: float) -> PlannedWay:
        """The way of a policy other than ours: columnar wherever the query can, else panes."""
        if "columnar" not in self.pipeline.paths:
            return self.through_spark("panes" if "panes" in self.pipeline.paths else "spark")
        wanted = self._devices_by_policy(inflection_bytes)
        mapped = list(map(_taken, self.costs.kinds, wanted))
        return self.columnar([each.device for each in mapped], [each.reason for each in mapped])

    def _devices_by_policy(self, inflection_bytes: float) -> tuple[OperationDevice, ...]:
        kinds, policy = self.costs.kinds, self.pipeline.policy
        if policy != "all-cpu" and self.absence is not None:
            return one_device.map_devices(kinds, "cpu", self.absence)
        match policy:
            case "lmstream":
                mean_bytes = self.size.bytes / self.size.tasks
                return lmstream.map_devices(kinds, mean_bytes, inflection_bytes)
            case "static":
                return static.map_devices(kinds)
            case "all-gpu":
                return one_device.map_devices(kinds, "gpu", "policy all-gpu")
            case _:
                return one_device.map_devices(kinds, "cpu", "policy all-cpu")

    def forced(self, choice: DeviceChoice) -> PlannedWay:
        """The way that a query insists on; what its plan cannot do is left to Spark."""
        paths = self.pipeline.paths
        if choice in ("cpu", "gpu") and "columnar" in paths:
            device: Device = "gpu" if choice == "gpu" and self.absence is None else "cpu"
            return self.on_one_device(device)
        return self.through_spark("panes" if choice == "panes" and "panes" in paths else "spark")


def forced_plan(planning: Planning) -> BatchPlan:
    """The plan of a query that has set another choice than `auto`."""
    choice = planning.pipeline.devices
    planned = planning.forced(choice)
    reason = f"devices are set to {choice}"
    if planned.way != choice:
        is_one_window = choice == "panes" and planning.pipeline.windows == 1
        reason += (
            ", and rows are in one window: as Spark plans it"
            if is_one_window
            else "; this plan cannot do that"
        )
    return _plan(planning, planned, reason)


def policy_plan(planning: Planning, inflection_bytes: float) -> BatchPlan:
    """The plan of a policy other than ours."""
    planned = planning.by_policy(inflection_bytes)
    reason = f"policy {planning.pipeline.policy} runs on the columnar path"
    if planned.path != "columnar":
        reason = f"the columnar path is not open: {planned.path}"
    elif "gpu" in planned.devices:
        reason += planning.bound_words
    return _plan(planning, planned, reason)


def usual_way(ways: dict[Way, PlannedWay]) -> PlannedWay | None:
    """The way that a batch takes without a plan: by panes, or as Spark plans it where rows are in
    one window. None of a query that is held to workers."""
    return ways.get("panes", ways.get("spark"))


def cheapest_way(ways: dict[Way, PlannedWay], *, may_use_workers: bool = True) -> PlannedWay:
    """The way that takes the least time; of equals the first. A batch takes the usual one until it
    and another were measured: the costs we ship are no reason to leave it. Without workers it is
    the cheapest of the others, if there is one."""
    usual = usual_way(ways)
    if usual is not None and not usual.is_measured:
        return usual
    known = [planned for planned in ways.values() if usual is None or planned.is_tried]
    if not may_use_workers:
        known = [planned for planned in known if planned.path != "columnar"] or known
    return _least(known)


def _least(ways: Iterable[PlannedWay]) -> PlannedWay:
    return min(ways, key=lambda planned: planned.reckoned_ms)


def our_plan(
    planning: Planning,
    ways: dict[Way, PlannedWay],
    probed: PlannedWay | None,
    *,
    may_use_workers: bool = True,
) -> BatchPlan:
    """The cheapest plan, or the one that is probed in its stead."""
    best = cheapest_way(ways, may_use_workers=may_use_workers)
    compared = ", ".join(
        f"{each.way} {each.time.wall:.3g} ms{'' if each.is_tried else ' (not measured)'}"
        for each in sorted(ways.values(), key=lambda planned: planned.reckoned_ms)
    )
    compared += planning.bound_words
    if probed is None:
        return _plan(planning, best, f"{_grounds(ways, best)}: {compared}")
    reason = f"probed, to learn what it takes: {compared}"
    return msgspec.structs.replace(_plan(planning, probed, reason), is_probe=True)


def _grounds(ways: dict[Way, PlannedWay], best: PlannedWay) -> str:
    """The grounds on which a way is taken, in a few words."""
    if best == usual_way(ways) and not best.is_measured:
        return f"{best.way} before anything is measured"
    if best != cheapest_way(ways):
        return "cheapest without workers, which the deadline leaves no time to start"
    if best.reckoned_ms <= _least(ways.values()).reckoned_ms:
        return "cheapest"
    return "cheapest of those that were measured"


def _plan(planning: Planning, planned: PlannedWay, reason: str) -> BatchPlan:
    pipeline, devices = planning.pipeline, planned.devices
    expected = expected_ms(planning.table, devices) if devices else ()
    return BatchPlan(
        planned.path,
        reason,
        tuple(
            PlannedOperation(planning.costs.kinds[index], device, device_reason, expected[index])
            for index, (device, device_reason) in enumerate(
                zip(devices, _reasons(planning, planned), strict=True)
            )
        ),
        planned.time.summed,
        pipeline.policy,
        must_not_fall_back=pipeline.devices == "gpu",
        bytes=planning.size.bytes,
    )


def _reasons(planning: Planning, planned: PlannedWay) -> tuple[str, ...]:
    if planning.absence is not None:
        return (planning.absence,) * len(planned.devices)
    if planned.reasons:
        return planned.reasons
    mapped = map_devices(planning.table, planned.devices)
    return tuple(
        f"{each.reason}; the gpu does not take {kind}" if kind in GPU_REFUSES else each.reason
        for kind, each in zip(planning.costs.kinds, mapped, strict=False)  # other paths map none
    )


def _taken(kind: OperationKind, mapped: OperationDevice) -> OperationDevice:
    """The device that a policy names for an operation; the CPU for what that does not take."""
    device = device_taken(kind, mapped.device)
    if device == mapped.device:
        return mapped
    return OperationDevice(device, f"the {mapped.device} does not take {kind}; {mapped.reason}")


def _way(devices: Sequence[Device]) -> Way:
    used = set(devices)
    if used == {"gpu"}:
        return "gpu"
    return "split" if "gpu" in used else "cpu"
