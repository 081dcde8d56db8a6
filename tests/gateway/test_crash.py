"""kill -9 under load: what was answered is there, whole, once; the rest is whole or absent."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections import Counter
from pathlib import Path

from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from support.servers.http_server import ARROW, Served, ipc, table

ROWS = 50
THREADS = 6
ANSWERS = 100


class Appender(threading.Thread):
    """Appends numbered requests of `ROWS` rows each until the server is gone."""

    def __init__(self, served: Served, number: int) -> None:
        super().__init__()
        self.served, self.number = served, number
        self.answered: dict[int, int] = {}
        self.sent = 0

    def run(self) -> None:
        with contextlib.closing(self.served.connection()) as connection:
            self.append_all(connection)

    def append_all(self, connection: http.client.HTTPConnection) -> None:
        while True:
            key = self.number * 1_000_000 + self.sent
            headers = {
                "Authorization": f"Bearer {self.served.token}",
                "Content-Type": ARROW,
                "Penstock-Producer": f"p{self.number}",
                "Penstock-Sequence": str(self.sent),
            }
            self.sent += 1
            try:
                body = ipc(table(*[key] * ROWS))
                connection.request("POST", "/v1/streams/s/rows?key=k", body, headers)
                answer = connection.getresponse()
                confirmed = json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError):
                return
            assert answer.status == 200, confirmed
            self.answered[key] = confirmed["position"]


def test_everything_answered_survives_a_kill_and_nothing_is_half_there(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Served(data) as served:
        served.make(substreams=3)
        appenders = [Appender(served, number) for number in range(THREADS)]
        for appender in appenders:
            appender.start()
        until = time.monotonic() + 120
        while sum(len(a.answered) for a in appenders) < ANSWERS and time.monotonic() < until:
            time.sleep(0.01)
        served.kill()
        for appender in appenders:
            appender.join()
    answered = {k: p for appender in appenders for k, p in appender.answered.items()}
    assert len(answered) >= ANSWERS
    with Served(data) as served:
        counts = Counter(served.values())
        assert set(counts.values()) == {ROWS}
        assert set(counts) >= set(answered)
        unanswered = set(counts) - set(answered)
        assert len(unanswered) <= THREADS
        # The last request of each appender is sent again, as a client would.
        for appender in appenders:
            last = appender.sent - 1
            key = appender.number * 1_000_000 + last
            headers = {
                "Penstock_Producer": f"p{appender.number}",
                "Penstock_Sequence": str(last),
            }
            again = served.append(table(*[key] * ROWS), "s", "?key=k", **headers).json()
            assert again["duplicate"] == (key in counts)
        assert set(Counter(served.values()).values()) == {ROWS}
        latest = served.ask("GET", "/server").json()["latest"]
    log = EmbeddedLog.open(data)
    invariants.check(log)
    with log.reading() as view:
        assert all(view.entry(lsn) is not None for lsn in range(1, latest + 1))  # type: ignore[arg-type]
    log.close()
