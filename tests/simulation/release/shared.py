"""What all runs of a simulated query stand on: the stores, the input, and one source of chance."""

from __future__ import annotations

import random
from typing import Any

from simulation.release.setup import Input, Setup
from simulation.release.stores import Journal, Location, Log, Piece, Sink


class Ground:
    """Survives every run. `disks` are the local disks of the hosts, which nobody cleans."""

    def __init__(
        self, seed: int, setup: Setup | None, log: type[Log], location: type[Location]
    ) -> None:
        self.rng = random.Random(seed)
        drawn = Setup.draw(self.rng)
        self.setup = setup or drawn
        self.input = Input(seed)
        self.journal: Journal = []
        self.location = location(self.journal)
        self.log = log(self.journal)
        self.sink = Sink(self.journal)
        self.disks: dict[str, dict[str, Piece]] = {}

    def note(self, kind: str, noted: Any) -> None:
        self.journal.append((kind, noted))

    def draw_salt(self) -> int:
        return self.rng.randrange(1, 1 << 30) if self.setup.attempts_differ else 0
