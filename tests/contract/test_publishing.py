"""Operations on their way to JetStream: held back, let go, and left unanswered at the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import TryAgain
from penstock.log.address import log_address
from penstock.log.backends.jetstream import publisher
from penstock.log.backends.jetstream.in_flight import Waiting
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.backends.jetstream.publisher import Publisher
from penstock.log.backends.jetstream.replay import Outcome
from penstock.settings.server import Settings
from penstock.testing.nats_servers import NatsServers
from support.log.drafts import draft, files, make, mark, pending, rows, stamp, take
from support.servers.processes import wait_until


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While this is not set, messages are not sent, as without a connection."""
    is_sent, send = threading.Event(), Publisher._send
    is_sent.set()

    async def hold(self: Publisher, waiting: Waiting, index: int) -> None:
        if is_sent.is_set():
            await send(self, waiting, index)
        else:
            waiting.failed = True

    monkeypatch.setattr(Publisher, "_send", hold)
    yield is_sent
    is_sent.set()


def test_what_was_held_back_for_want_of_room_goes_when_there_is_some(
    nats: NatsServers, tmp_path: Path, sending: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "PUBLISHED_WINDOW", 4)
    log = JetStreamLog.open(tmp_path, log_address(f"{nats.url}/held-back"))
    log.run(make())
    sending.clear()
    futures = [log.submit(rows(draft(0, n), producer=f"p{n}", sequence=0)) for n in range(8)]
    sending.set()
    assert len({future.result(60).position for future in futures}) == 8
    log.close()


def test_closing_answers_what_waits_behind_another_too(
    nats: NatsServers, tmp_path: Path, sending: threading.Event
) -> None:
    address = log_address(f"{nats.url}/behind-another")
    log = JetStreamLog.open(tmp_path, address, Settings(stop_s_max=1))
    log.run(make())
    sending.clear()
    futures = [log.submit(rows(draft(0, n), producer="p", sequence=n)) for n in range(3)]
    log.close()
    for future in futures:
        error = future.exception(10)
        assert isinstance(error, TryAgain)
        assert error.code == "stopping"
    sending.set()
    again = JetStreamLog.open(tmp_path, address)
    repeat = again.submit(rows(draft(0, 0), producer="p", sequence=0))
    assert not repeat.result(60).duplicate
    again.close()


def test_appends_of_a_batch_are_under_way_at_once_and_its_marker_after_them(
    nats: NatsServers, tmp_path: Path, sending: threading.Event
) -> None:
    """No append waits for the place of another: all of them are published before one is seen."""
    log = JetStreamLog.open(tmp_path, log_address(f"{nats.url}/overlapping"))
    log.run(make())
    log.run(take())
    sending.clear()
    appends = [
        future
        for attempt in range(3)
        for future in log.submit_early(
            [pending(draft(0, attempt), by=stamp(attempt=attempt)), files(f"state/{attempt}")]
        )
    ]
    wait_until("all are under way", lambda: len(log._publisher._under_way) == len(appends))
    assert not any(future.done() for future in appends)
    sending.set()
    given = [future.result(60) for future in appends]
    assert {each.start for each in given} == {None}
    log.run(mark(*given[2].answer, attempt=1, files={"state/1": given[3].answer[0]}))
    log.close()


def test_the_next_append_of_a_batch_is_in_the_stream_before_this_one_is_answered(
    nats: NatsServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JetStream has both, and no answer has come: a query's appends do not wait for each other. The
    marker does, as it names the places that their answers give."""
    answering, settle = threading.Event(), Publisher.settle
    answering.set()

    def answer_later(self: Publisher, outcomes: list[Outcome]) -> None:
        answering.wait()
        settle(self, outcomes)

    monkeypatch.setattr(Publisher, "settle", answer_later)
    log = JetStreamLog.open(tmp_path, log_address(f"{nats.url}/next-before-answer"))
    try:
        log.run(make())
        log.run(take())
        answering.clear()
        (first,) = log.submit_early([pending(draft(0, 0), by=stamp(attempt=0))])
        (second,) = log.submit_early([pending(draft(0, 1), by=stamp(attempt=1))])

        def are_taken() -> bool:
            published = log._publisher._under_way.values()
            return len(published) == 2 and not any(waiting.unacked for waiting in published)

        wait_until("JetStream has taken both", are_taken)
        assert not first.done()
        assert not second.done()
        answering.set()
        places = [*first.result(60).answer, *second.result(60).answer]
        assert log.run(mark(places[1], attempt=1)) > max(places)
    finally:
        answering.set()
        log.close()
