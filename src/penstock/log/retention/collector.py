"""A thread that trims what nobody needs any more, and names consumers that stay away."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall
from penstock.log.backends.keep_running import going_on
from penstock.log.backends.local import LocalLog
from penstock.log.decide.consumers import Holder
from penstock.log.operations import Operation, Trimmed
from penstock.log.retention.due import away, steps
from penstock.log.store.view import StoreView

_LOG = logging.getLogger("penstock.log")


class Collector:
    """Collects every `collect_s` until closed; with 0 only when told to.

    One step is under way at a time, each of at most `trim_entries_max` entries, so that appends
    wait for a step and not for a round.
    """

    def __init__(self, log: LocalLog, clock: Clock = SYSTEM_CLOCK) -> None:
        self._log = log
        self._clock = clock
        self._started_ms, self._started_s = clock.wall_ms(), clock.monotonic_s()
        self._named: set[tuple[str, str, str]] = set()
        self._stopping = threading.Event()
        self._closed: Future[None] = Future()
        self._collecting = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._log.settings.collect_s:
            self._thread = threading.Thread(
                target=self._run, name="penstock-collector", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """End without waiting for the step under way, which a log that stands still may answer
        never: it takes place or not, as any other. Close the log afterwards, not before."""
        self._stopping.set()
        if not self._closed.done():
            self._closed.set_result(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._log.settings.collect_s):
            with going_on("collecting"):
                self.collect()

    def collect(self) -> Trimmed:
        """Take steps until there are none; returns how much was removed."""
        entries = size = 0
        with self._collecting:
            while not self._stopping.is_set():
                done = self._round()
                if done is None:
                    break
                entries, size = entries + done.entries, size + done.payload_bytes
            self.name_those_away()
        return Trimmed(0, entries, size)

    def _round(self) -> Trimmed | None:
        """One step for each stream and query; None if nothing was removed."""
        with self._log.reading() as view:
            due_steps = steps(view, self.now_ms(view), self._log.settings)
        entries = size = done = 0
        for step in due_steps:
            if self._stopping.is_set():
                break
            try:
                answer = self._carried_out(step)
            except BadCall as refusal:
                # Somebody registered, or the stream went, since the step was thought of.
                _LOG.info("not collected: %s", refusal)
                continue
            if answer is None:
                break
            # A step that found nothing left to remove is not taken again this time.
            done += not isinstance(answer, Trimmed) or answer.entries > 0
            if isinstance(answer, Trimmed):
                entries, size = entries + answer.entries, size + answer.payload_bytes
        return Trimmed(0, entries, size) if done else None

    def _carried_out(self, step: Operation) -> Any:
        """The answer to a step; None if this was closed before there was one."""
        answer = self._log.submit(step)
        wait((answer, self._closed), return_when=FIRST_COMPLETED)
        return answer.result() if answer.done() else None

    def now_ms(self, view: StoreView) -> int:
        """The time by which entries are old and consumers away.

        Wall time as it was at start, moved on by what has really passed, so that a wall clock that
        jumps ahead makes nobody seem to have been away; and no later than the log would stamp what
        comes now, so that one that jumps back does not either: who is heard of then is stamped
        with the time of before the jump, until that has passed again.
        """
        passed_s = self._clock.monotonic_s() - self._started_s
        steady_ms = self._started_ms + round(passed_s * 1000)
        return min(steady_ms, max(self._clock.wall_ms(), view.now_ms))

    def name_those_away(self) -> list[Holder]:
        """Say once of each consumer that stays away that nothing is held for it any more."""
        with self._log.reading() as view:
            holders = away(view, self.now_ms(view), self._log.settings)
        named = {(str(each.reader), each.name, str(each.stream)) for each in holders}
        for each in holders:
            if (each.reader, each.name, str(each.stream)) not in self._named:
                _LOG.warning(
                    "%s of the stream %r has not been heard of for %d s and is not waited for any "
                    "more: what it has not read may be trimmed; start it again, or forget it",
                    each, each.stream, self._log.settings.consumer_away_ms_max // 1000,
                )  # fmt: skip
        self._named = named
        return holders
