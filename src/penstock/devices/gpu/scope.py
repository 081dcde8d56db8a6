"""The scope of an expression on a device: its rows, and which of them need its value.

On a device every branch is computed for all rows. Where Spark would not have evaluated one, its
rows are left out of the check whether a value failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.devices.gpu.backend import Array, Backend
from penstock.devices.gpu.columns import DeviceColumn, DeviceRows, dtype_of, shared_validity
from penstock.devices.operators.expressions import Literal, scalar_of


@dataclass(frozen=True)
class Scope:
    """Rows, and the mask of those that need a value; None for all of them."""

    rows: DeviceRows
    needed: Array | None = None

    @property
    def backend(self) -> Backend:
        return self.rows.backend

    @property
    def xp(self) -> Any:
        return self.rows.backend.xp

    @property
    def count(self) -> int:
        return self.rows.count

    def within(self, mask: Array) -> Scope:
        """The scope of a branch that only some rows take."""
        return replace(self, needed=mask if self.needed is None else self.needed & mask)

    def has_failed(self, is_wrong: Array, values: Sequence[DeviceColumn]) -> bool:
        """Whether a row that needs its value has a wrong one, of arguments that are known."""
        valid = shared_validity(values)
        for mask in (valid, self.needed):
            if mask is not None:
                is_wrong = is_wrong & mask
        return bool(is_wrong.any())


def constant(literal: Literal, scope: Scope) -> DeviceColumn:
    """The column of a constant."""
    xp, scalar = scope.xp, scalar_of(literal)
    kind, dtype = scalar.type, dtype_of(scalar.type)
    valid = None if scalar.is_valid else xp.zeros(scope.count, dtype=bool)
    if pa.types.is_string(kind):
        texts = pa.array([scalar.as_py() or ""])
        return DeviceColumn(kind, xp.zeros(scope.count, dtype=dtype), valid, texts)
    number = number_of(scalar) if scalar.is_valid else 0
    return DeviceColumn(kind, xp.full(scope.count, number, dtype=dtype), valid)


def number_of(scalar: pa.Scalar) -> bool | int | float:
    """The number that a constant is on a device."""
    if pa.types.is_decimal(scalar.type):
        return int(scalar.as_py().scaleb(scalar.type.scale))
    if pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type):
        return int(scalar.value)
    value: bool | int | float = scalar.as_py()
    return value
