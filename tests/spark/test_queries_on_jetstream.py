"""NEXMark with the log in JetStream, three replicas: its leader, its server, its driver killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.log.address import log_address
from penstock.testing.nats_servers import NatsServers, nats_program
from penstock_lab.measure import query_groups as groups
from penstock_lab.measure.killed_driver import Answered, Size, Trial
from support.servers.processes import QUICK_START, wait_until
from support.skip_reasons import NO_NATS

# A query without state, two joins and an aggregate over windows: what they ask of the log differs.
NAMES = ("q1", "q3", "q5", "q8")
SIZE = Size(16, 3_000, QUICK_START)


@dataclass
class Run:
    """A trial during which the server that led the log's stream was down for some batches."""

    folder: Path
    servers: NatsServers
    answered: Mapping[str, Answered] = field(default_factory=dict)
    killed: int | None = None
    followed_by: int | None = None
    committed: list[dict[str, int]] = field(default_factory=list)
    """Batches of each query when the leader had been killed, and before it was started again."""

    def try_all(self) -> None:
        group = groups.nexmark().only(frozenset(NAMES))
        with Trial(
            group,
            SIZE,
            self.folder,
            log=self.servers.url,
            outage=self._without_the_leader(),
        ) as self._trial:
            self.answered = {answered.query: answered for answered in self._trial.run()}

    @contextlib.contextmanager
    def _without_the_leader(self) -> Iterator[None]:
        self.killed = self._leader()
        self.servers.kill(self.killed)
        self.committed.append(self._batches())
        yield
        self.followed_by = self._leader()
        self.committed.append(self._batches())
        self.servers.start(self.killed)
        self.servers.wait_ready()

    def _leader(self) -> int:
        stream = log_address(self.servers.url).name
        leaders: list[int | None] = []

        def is_there() -> bool:
            leaders.append(self.servers.leader(stream))
            return leaders[-1] not in (None, self.killed)

        wait_until("the log has a leader that runs", is_there)
        assert leaders[-1] is not None
        return leaders[-1]

    def _batches(self) -> dict[str, int]:
        known = self._trial.client.queries()
        return {query.query: query.marker.batch for query in known if query.marker is not None}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    if nats_program() is None:
        pytest.skip(NO_NATS)
    folder = tmp_path_factory.mktemp("jetstream")
    with NatsServers(folder / "nats") as servers:
        run = Run(folder / "trial", servers)
        run.try_all()
        yield run


@pytest.mark.parametrize("name", NAMES)
def test_a_nexmark_query_is_right_after_every_batch(run: Run, name: str) -> None:
    answered = run.answered[name]
    assert answered.error is None, answered.error
    assert answered.different == 0, "\n".join(answered.differences)
    assert answered.rows > 0
    assert answered.events == SIZE.commits * SIZE.events
    assert 0 < answered.batches_at_the_kill < answered.batches
    assert answered.instance == 2


def test_queries_commit_while_the_server_that_led_the_log_is_down(run: Run) -> None:
    assert run.followed_by not in (None, run.killed)
    before, after = run.committed
    # One that had read all there was by then has nothing to commit.
    moved = [query for query in after if after[query] > before.get(query, -1)]
    assert len(moved) >= len(NAMES) // 2
