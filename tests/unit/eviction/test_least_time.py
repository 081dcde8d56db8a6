"""The least time of a store: no scan is skipped that would have removed a row."""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.eviction.least_time import NO_ROW_US, LeastTime
from support.eviction_vectors import FILE, HISTORIES, answers, vectors

KEYS = st.integers(0, 8)
TIMES = st.none() | st.integers(-20, 20)
WATERMARKS = st.integers(-22, 22)


def test_the_vectors_are_what_their_program_writes() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == vectors()


@pytest.mark.parametrize(
    ("history", "skips"),
    [
        ("an empty store skips every scan", [True]),
        ("a store that was read from its checkpoint knows nothing", [False]),
        ("a row that was put holds a later watermark", [True, False, False]),
        ("a row without a time is never expired", [True]),
        ("a scan teaches what stays", [True, False]),
        ("a scan that was cut off teaches nothing", [False, True]),
        ("rows that were not removed keep the bound", [True, False]),
        ("what is put during a scan counts", [True, False]),
        ("an aborted task leaves nothing known", [False, False]),
        ("a bound that was measured is exact until something is put", [True, False, False]),
    ],
)
def test_a_history_ends_in_these_answers(history: str, skips: list[bool]) -> None:
    assert answers(HISTORIES[history]) == skips


class Store(RuleBasedStateMachine):
    """A store and the tasks that write to it, scan it, fail, and lose it; beside it what it knows.

    `rows` is what the native store holds, `saved` what its checkpoint does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[int, int | None] = {}
        self.saved: dict[int, int | None] = {}
        self.least = LeastTime()

    @initialize(rows=st.dictionaries(KEYS, TIMES))
    def begin(self, rows: dict[int, int | None]) -> None:
        self.rows, self.saved = dict(rows), dict(rows)
        self.least = self.least.opened(is_empty=not rows)

    @rule(key=KEYS, time_us=TIMES)
    def put(self, key: int, time_us: int | None) -> None:
        self.rows[key] = time_us
        self.least = self.least.put(time_us)

    @rule(key=KEYS)
    def remove(self, key: int) -> None:
        self.rows.pop(key, None)
        self.least = self.least.removed()

    @rule()
    def commit(self) -> None:
        self.saved = dict(self.rows)

    @rule(reads_before_loss=st.booleans())
    def abort(self, reads_before_loss: bool) -> None:
        """The aborted writes stay in the store until it is opened again."""
        self.least = self.least.forgotten()
        if not reads_before_loss:
            self.rows = dict(self.saved)
            self.least = self.least.opened(is_empty=not self.rows)

    @rule(until_us=WATERMARKS, rows_before_cut=st.none() | st.integers(0, 9))
    def scan(self, until_us: int, rows_before_cut: int | None) -> None:
        """As Spark's operators do: every row that is expired is removed when it is read."""
        if self.least.may_skip(until_us):
            return
        self.least = self.least.begun(until_us)
        for number, (key, time_us) in enumerate(list(self.rows.items())):
            if number == rows_before_cut:
                return
            self.least = self.least.read(time_us)
            if time_us is not None and time_us <= until_us:
                self.remove(key)
        self.least = self.least.ended()
        assert self.least.bound_us == min(
            (time_us for time_us in self.rows.values() if time_us is not None), default=NO_ROW_US
        )

    @rule(until_us=WATERMARKS, time_us=st.integers(-20, 20), key=KEYS)
    def scan_beside_writes(self, until_us: int, time_us: int, key: int) -> None:
        """A scan reads the store as it was when it began, while rows are put."""
        self.least = self.least.begun(until_us)
        for number, (old_key, old_us) in enumerate(list(self.rows.items())):
            if number == 1:
                self.put(key, time_us)
            self.least = self.least.read(old_us)
            if old_us is not None and old_us <= until_us:
                self.remove(old_key)
        self.least = self.least.ended()

    @rule()
    def scan_that_removes_nothing(self) -> None:
        """Not what a scan is for: then nothing is learned from it."""
        self.least = self.least.begun(0)
        for time_us in self.rows.values():
            self.least = self.least.read(time_us)
        self.least = self.least.ended()

    @rule()
    def measure(self) -> None:
        times = [time_us for time_us in self.rows.values() if time_us is not None]
        self.least = self.least.measured(min(times, default=NO_ROW_US))

    @invariant()
    def no_scan_is_skipped_that_would_remove_a_row(self) -> None:
        times = [time_us for time_us in self.rows.values() if time_us is not None]
        for until_us in range(-22, 23):
            if self.least.may_skip(until_us):
                assert all(time_us > until_us for time_us in times)


TestStore = Store.TestCase
TestStore.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
