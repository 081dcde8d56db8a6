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
from penstock.settings.server import Settings
from penstock.testing.nats_servers import NatsServers
from support.log.drafts import draft, make, rows


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
