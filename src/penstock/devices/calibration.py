"""A calibration: what operations, transfers and paths cost on one kind of machine.

It is where a query's costs begin; queries that run there keep it up to date, so that the next one
begins with what they have learned.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec

from penstock.devices.components import DEFAULT_LINES
from penstock.errors import BadCall
from penstock.fit.learned_line import LearnedLine
from penstock.fit.line import Line
from penstock.model.device_plans import MachineBody

FORMAT = 1

Cost = Annotated[float, msgspec.Meta(ge=0.0, le=1e12)]


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of machine: costs that were measured on one hold on another of the same kind."""

    cpu: str
    cores: int
    gpu: str | None = None
    cuda: str | None = None

    @property
    def key(self) -> str:
        """A short name for files."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

    def __str__(self) -> str:
        gpu = "no GPU" if self.gpu is None else self.gpu
        cuda = "" if self.cuda is None else f", CUDA {self.cuda}"
        return f"{self.cpu} with {self.cores} cores, {gpu}{cuda}"


def machine_of(body: MachineBody) -> Machine:
    """The kind of a machine that a question names."""
    return Machine(body.cpu, body.cores, body.gpu, body.cuda if body.gpu is not None else None)


class CalibratedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cost of one part for a task, and from how many batches it was learned."""

    fixed_ms: Cost
    ms_per_mb: Cost
    values: Annotated[int, msgspec.Meta(ge=0)] = 0

    @property
    def line(self) -> Line:
        return Line(self.fixed_ms, self.ms_per_mb / 1e6)


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Costs by part on one kind of machine, as they are kept in a file."""

    machine: Machine
    costs: dict[str, CalibratedLine]
    format: int = FORMAT


def decode_calibration(text: bytes, name: str) -> Calibration:
    """A calibration from the bytes of the file `name`; refused in a sentence if they are none."""
    try:
        calibration = msgspec.json.decode(text, type=Calibration)
    except msgspec.DecodeError as error:
        raise BadCall(
            f"{name} holds no calibration: {error}; remove it, and it is made anew from batches "
            "that run",
            code="bad_calibration",
        ) from error
    unknown = sorted(calibration.costs.keys() - DEFAULT_LINES.keys())
    if calibration.format != FORMAT or unknown:
        found_format = f"format {calibration.format}"
        raise BadCall(
            f"{name} has {f'costs of {unknown[0]!r}' if unknown else found_format}, which this "
            "version does not know; remove it, and it is made anew from batches that run",
            code="bad_calibration",
        )
    return calibration


def check_machine(calibration: Calibration, machine: Machine, name: str) -> Calibration:
    """The calibration, if it is of this kind of machine."""
    if calibration.machine != machine:
        raise BadCall(
            f"the calibration {name} is of another machine ({calibration.machine}) than the one "
            f"that batches run on ({machine}); remove it, and it is made anew from batches that "
            "run",
            code="other_machine",
        )
    return calibration


class MachineCosts:
    """The costs on one kind of machine while queries run there, refitted with every report."""

    def __init__(self, machine: Machine, calibration: Calibration | None = None) -> None:
        self.machine = machine
        self.changes = 0
        costs = {} if calibration is None else calibration.costs
        self._lines = {
            part: LearnedLine(costs[part].line, costs[part].values)
            if part in costs
            else LearnedLine(default)
            for part, default in DEFAULT_LINES.items()
        }

    def line(self, part: str) -> Line:
        """The cost of a part now."""
        return self._lines[part].line

    def values(self, part: str) -> int:
        """The number of batches that the cost of a part was learned from; 0: we ship it."""
        return self._lines[part].values

    def learn(self, part: str, size: float, ms: float) -> None:
        """Take in that a task with `size` bytes took `ms` for a part."""
        self._lines[part].add(size, ms)
        self.changes += 1

    def calibration(self) -> Calibration:
        """The costs that were measured, for a file."""
        return Calibration(
            self.machine,
            {
                part: CalibratedLine(learned.line.fixed, learned.line.slope * 1e6, learned.values)
                for part, learned in self._lines.items()
                if learned.values
            },
        )
