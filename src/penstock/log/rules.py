"""Rules that every server of a log decides by, beside the operation and the state."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.protocol import PROTOCOL
from penstock.settings.server import Settings

RECORD_WINDOW = 4_096
"""How far below its highest sequence a producer's records may still come or be repeated."""

NAMES_BOUNDED = 3
"""The version from which on a name that cannot be part of a key is refused before anything else."""
ALTERATIONS_COUNTED = 3
"""The version from which on a stream counts how often it was altered."""
PARTS_CLEARED = 3
"""The version from which on an operation can be taken back whose number has left the window."""
SCHEMAS_READ = 3
"""The version from which on schemas are compared by what they say, not by their bytes."""
PRODUCERS_KEPT = 3
"""The version from which on a producer is remembered for a time, however many there are."""
ORIGINS_KEPT = 4
"""The version from which on a commit keeps when the oldest row behind it arrived."""
STARTS_NAMED = 6
"""The version from which on a marker names the starts that answered early."""


@dataclass(frozen=True)
class Rules:
    """Values that decisions rest on, the same for every operation of a log, or of a part of it.

    `version` is that of the operation: what one of an earlier version was answered stays so.
    """

    version: int = PROTOCOL
    producers_max: int = Settings.producers_max
    producer_kept_ms_min: int = Settings.producer_kept_ms_min

    @classmethod
    def of(cls, settings: Settings) -> Rules:
        return cls(
            producers_max=settings.producers_max,
            producer_kept_ms_min=settings.producer_kept_ms_min,
        )

    @property
    def step_ms_max(self) -> int:
        """The most that the time between two operations counts as silence of producers, so that a
        clock that jumps makes nobody silent for long."""
        return self.producer_kept_ms_min // 4
