"""Rules that every server of a log decides by, beside the operation and the state."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.protocol import PROTOCOL
from penstock.settings.server import Settings

NAMES_BOUNDED = 3
"""The version from which on a name that cannot be part of a key is refused before anything else."""


@dataclass(frozen=True)
class Rules:
    """What decisions rest on that is the same for every operation of a log, or of a part of it.

    `version` is that of the operation: what one of an earlier version was answered stays so.
    """

    version: int = PROTOCOL
    producers_max: int = Settings.producers_max

    @classmethod
    def of(cls, settings: Settings) -> Rules:
        return cls(producers_max=settings.producers_max)
