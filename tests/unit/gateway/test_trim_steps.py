"""A trim that somebody asks for goes in steps, as long as it is, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from penstock.errors import BadCall
from penstock.gateway.routes import streams as routes
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.decide.need import need_stream
from penstock.log.operations import Operation, Register, TrimStream
from penstock.log.retention import trim_step as stepping
from penstock.log.retention.trim_step import trim_step
from penstock.model.ids import Lsn, StreamName
from penstock.model.requests import TrimBody
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, make, rows

S = StreamName("s")
AWAY_MS = 10_000
COMMITS = 10


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    """A stream of a few commits of two entries each."""
    log = EmbeddedLog.open(tmp_path / "data", Settings(), clock)
    log.run(make())
    for value in range(COMMITS):
        log.run(rows(draft(0, value), draft(1, value)))
    yield log
    invariants.check(log)
    log.close()


class Gateway:
    """A gateway as far as a trim needs it: keeps what it ran, and others append between."""

    def __init__(self, log: EmbeddedLog, entries_max: int) -> None:
        self._log = log
        self.settings = Settings(trim_entries_max=entries_max, consumer_away_ms_max=AWAY_MS)
        self.collector = SimpleNamespace(now_ms=lambda view: view.now_ms)
        self.ran: list[TrimStream] = []

    def read(self, question: Callable[..., Any], *args: Any) -> Any:
        with self._log.reading() as view:
            return question(view, *args)

    def stream(self, name: StreamName) -> Any:
        return self.read(need_stream, name)

    async def look_up(self, work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)

    async def run(self, operation: Operation) -> Any:
        assert isinstance(operation, TrimStream)
        self.ran.append(operation)
        answer = self._log.run(operation)
        self._log.run(rows(draft(0, 99)))
        return answer


def trimmed(
    log: EmbeddedLog,
    until: int,
    entries_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Gateway, dict[str, int]]:
    """The route's answer to a request to trim so far."""
    gateway = Gateway(log, entries_max)

    async def body(*_: object) -> TrimBody:
        return TrimBody(until)

    cast("Any", gateway).json_body = body
    monkeypatch.setattr(routes, "gateway_of", lambda _: gateway)
    monkeypatch.setattr(routes, "stream_in_path", lambda _: S)
    answer = asyncio.run(cast("Any", routes.trim_stream(cast("Any", None))))
    return gateway, dict(msgspec.json.decode(answer.body))


def last_of(log: EmbeddedLog) -> Lsn:
    with log.reading() as view:
        last = view.last_commit(need_stream(view, S))
        assert last is not None
        return last.lsn


def test_a_trim_of_much_is_several_operations_between_which_others_append(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = last_of(log)
    gateway, answer = trimmed(log, last, 5, monkeypatch)
    assert len(gateway.ran) == 4, "three commits have more than five entries"
    assert [step.until for step in gateway.ran] == sorted(step.until for step in gateway.ran)
    assert (answer["until"], answer["entries"]) == (last, 2 * COMMITS)
    assert answer["payload_bytes"] > 0


def test_a_trim_of_little_is_one_operation(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, answer = trimmed(log, last_of(log), 250, monkeypatch)
    assert (len(gateway.ran), answer["entries"]) == (1, 2 * COMMITS)
    gateway, answer = trimmed(log, answer["until"], 250, monkeypatch)
    assert (len(gateway.ran), answer["entries"]) == (1, 0), "what is gone is gone"


def test_who_may_not_trim_all_of_it_trims_nothing(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = last_of(log)
    log.run(Register("group", "g", S, Lsn(0)))
    with pytest.raises(BadCall, match="the group 'g'") as refused:
        trimmed(log, last, 5, monkeypatch)
    assert refused.value.code == "still_needed"
    with log.reading() as view:
        assert len(list(view.commits(need_stream(view, S), 0, last))) == COMMITS


def test_who_has_stayed_away_is_not_asked_though_the_log_stood_still(
    log: EmbeddedLog, clock: ManualClock
) -> None:
    last = last_of(log)
    log.run(Register("group", "g", S, Lsn(0)))
    whole = TrimStream(S, last, AWAY_MS, now_ms=clock.now_ms + AWAY_MS + 1)
    with log.reading() as view:
        assert trim_step(view, whole, 250).is_last
    with log.reading() as view, pytest.raises(BadCall, match="the group 'g'"):
        trim_step(view, msgspec.structs.replace(whole, now_ms=clock.now_ms), 250)


def test_a_step_has_as_many_bytes_as_it_may(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "STEP_BYTES", 1)
    gateway, answer = trimmed(log, last_of(log), 250, monkeypatch)
    assert len(gateway.ran) == COMMITS
    assert answer["entries"] == 2 * COMMITS
