"""An outside reader: sees rows when anyone else would, and notes how old they were by then."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa

from penstock.client import Client
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError
from penstock_lab.percentiles import Numbers, percentile

PAUSE_S = 0.02


class Watcher:
    """Follows one stream on a thread and a connection of its own.

    Latency of a row: the moment it was read here, after its marker, less the `sent_at` it carries,
    which is the intended send time of the latest bid in it.
    """

    def __init__(
        self, client: Client, stream: str, after: int, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.after = after
        self._client = client
        self._stream = stream
        self._clock = clock
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._seen: list[tuple[int, Numbers]] = []
        self.rows = 0
        self.error: PenstockError | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Follow from `after` on; the stream must exist."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns within about a second; what was seen stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def wait_rows(self, rows: int, timeout_s: float) -> bool:
        """Block until that many rows were seen; False if they were not in time."""
        until = self._clock.monotonic_s() + timeout_s
        while self.rows < rows and self.error is None and self._clock.monotonic_s() < until:
            self._clock.sleep(PAUSE_S)
        return self.rows >= rows

    def see(self, rows: pa.Table, seen_ms: int) -> None:
        """Note rows read at that moment."""
        sent_us = rows["sent_at"].cast(pa.int64()).to_numpy()
        with self._lock:
            self._seen.append((seen_ms, sent_us))
            self.rows += rows.num_rows

    def latency_ms(
        self, share: float, *, seen_after_ms: int = 0, sent_after_ms: int = 0
    ) -> float | None:
        """A percentile over the rows seen and sent after those moments; None without any."""
        with self._lock:
            parts = [
                seen_ms - sent_us[sent_us > sent_after_ms * 1000] / 1000
                for seen_ms, sent_us in self._seen
                if seen_ms > seen_after_ms
            ]
        return percentile(np.concatenate(parts), share) if parts else None

    def _run(self) -> None:
        try:
            for followed in self._client.follow(self._stream, self.after, stop=self._stop):
                self.see(followed.rows, self._clock.wall_ms())
        except PenstockError as error:
            self.error = error
