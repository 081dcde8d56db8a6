"""A setting as data: the one shape of the server's settings and of the plug-in's."""

from __future__ import annotations

import msgspec

from penstock.errors import BadCall

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

INT_MAX = (1 << 31) - 1


class Setting(msgspec.Struct, frozen=True):
    """Name, doc, unit, default and bounds of one setting.

    A number has a `unit`, and a bound of None is no bound; a setting without a unit is true or
    false if its default is, else one of `choices`, else a text. A default of None is explained in
    `doc`.
    """

    name: str
    doc: str
    unit: str | None
    default: int | bool | str | None
    min: int | None = None
    max: int | None = None
    choices: tuple[str, ...] = ()

    def refuse_out_of_bounds(self, value: int) -> None:
        """Raise BadCall, with name and bounds, unless `value` lies within them."""
        low, high = self.min, self.max
        if (low is not None and value < low) or (high is not None and value > high):
            raise BadCall(
                f"{self.name} is {value}, and must be {self.bounds()} {self.unit}",
                code="bad_request",
            )

    def bounds(self) -> str:
        """The bounds in words; empty if there are none."""
        if self.min is not None and self.max is not None:
            return f"{self.min} to {self.max}"
        if self.min is not None:
            return f"{self.min} or more"
        return "" if self.max is None else f"at most {self.max}"
