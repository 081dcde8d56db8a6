"""One group of queries on a log of their own; its server and their driver are killed with SIGKILL.

A trial goes, in this order:

1. half of the input is there; every query takes one commit of each of its inputs per batch;
2. when each has committed something, an outage of the caller's begins, if there is one, and the
   server is killed and started again; when each has committed some batches the outage ends, one
   more commit comes, and the driver is killed at it;
3. the oracle looks at what was committed by then, while nobody writes;
4. the rest of the input comes, a new driver works it off from the checkpoints and stops;
5. the oracle looks at everything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from penstock.client import Client
from penstock.client.address import Address
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError, TryAgain
from penstock.spark import server_process
from penstock_lab import oracle
from penstock_lab.experiment.children import Engine
from penstock_lab.experiment.driver_commands import Drain, Look, Setup, Start, Stop
from penstock_lab.measure.feeding import Feed, create_outputs
from penstock_lab.measure.query_groups import Asked, Group
from penstock_lab.oracle import Checked
from penstock_lab.processes import Late

SYSTEM = "penstock"
CORES = 2
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
STALL_S = 180.0
"""How long a group may commit nothing before it counts as failed."""
POLL_S = 0.25
INTO_A_BATCH_S = 0.5
"""From the last commit before the kill to the kill: most queries are then at a batch."""
BATCHES_BEFORE_THE_KILL = 3
"""Of the driver; the server's kill comes after the first."""
BATCHES_MIN = 20
"""Fewer batches say too little about an answer that is kept from one to the next."""
DIFFERENCES_KEPT = 5

Tell = Callable[[str], None]
"""Called once for every batch of every stage, with what is being done."""
Open = Callable[[Setup, Address | None], Engine]
Outage = contextlib.AbstractContextManager[object]
"""Entered where something beside the server is to fail, left where it is to come back."""


class Size(msgspec.Struct, frozen=True):
    """The size of what is fed: so many commits of so many events of each source."""

    commits: int
    events: int
    conf: dict[str, str] = {}
    """Further settings of Spark."""
    conf_after: dict[str, str] | None = None
    """Those of the driver that goes on after the kill; None: the same."""

    @property
    def before_the_kill(self) -> int:
        return self.commits // 2 - 1


class Answered(msgspec.Struct, frozen=True):
    """The oracle's findings on one query; `different` rows at the kill or at the end."""

    query: str
    events: int
    """Of the generator; a query that reads some of its streams sees fewer rows."""
    batches_at_the_kill: int = 0
    batches: int = 0
    """Committed by the stage that committed fewest."""
    rows: int = 0
    different: int = 0
    instance: int = 0
    differences: tuple[str, ...] = ()
    error: str | None = None

    @property
    def is_right(self) -> bool:
        return self.error is None and self.different == 0


class Trial:
    """A server of its own, which stays until the end of the `with` block, whatever `run` did."""

    def __init__(
        self,
        group: Group,
        size: Size,
        folder: Path,
        tell: Tell = lambda _: None,
        opening: Open = Engine,
        clock: Clock = SYSTEM_CLOCK,
        log: str | None = None,
        outage: Outage | None = None,
    ) -> None:
        self.group = group
        self.size = size
        self.ids: dict[str, dict[str, str]] = {}
        """Spark's ids of the stages of each query, by the query's name here."""
        self._folder = folder
        self._tell = tell
        self._opening = opening
        self._clock = clock
        self._log = log
        """Where the log is kept, if not in a folder."""
        self._outage = contextlib.nullcontext() if outage is None else outage
        self._closing = contextlib.ExitStack()
        self._batches_told: dict[str, int] = {}

    def __enter__(self) -> Trial:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._server = server_process.start(self._folder / "data", log=self._log)
            self._closing.callback(self._stop_server)
            at = self._address = self._server.address
            self.client = self._closing.enter_context(Client(at.url, at.token, at.ca))
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def checkpoints(self, asked: Asked) -> Path:
        return self._folder / asked.name / "checkpoints"

    def run(self) -> list[Answered]:
        """Run the trial; a driver that fails is an error of all its queries, not raised."""
        try:
            at_the_kill = self._until_the_kill()
            self._feed.append(self.size.commits - self.size.before_the_kill - 1)  # 4
            self._to_the_end()
        except PenstockError as error:
            events = self.size.commits * self.size.events
            return [
                Answered(asked_query.name, events, error=error.message)
                for asked_query in self.group.asked
            ]
        return [
            self._answered(asked_query, at_the_kill[asked_query.name])
            for asked_query in self.group.asked
        ]  # 5

    def check(self, asked: Asked) -> Checked:
        """The oracle's comparison of all that the query has committed by now."""
        return oracle.check(
            asked.query,
            self.client,
            self.ids[asked.name],
            streams=asked.streams,
            tables=self.group.tables,
        )

    def _until_the_kill(self) -> dict[str, Checked]:
        self._feed = Feed(self.client, self.group.sources, self.size.events)
        self._feed.append(self.size.before_the_kill)  # 1
        for asked in self.group.asked:
            create_outputs(self.client, asked.query, asked.streams)
        with self._engine(self.size.conf) as engine:
            self.ids = self._start(engine)
            self._wait(engine, lambda: all(count > 0 for count in self._batches_told.values()))
            with self._outage:
                self._kill_server()
                self._wait(
                    engine,
                    lambda: all(
                        count >= BATCHES_BEFORE_THE_KILL for count in self._batches_told.values()
                    ),
                )
            self._feed.append(1)  # 2
            self._clock.sleep(INTO_A_BATCH_S)
            engine.kill()
        return {asked_query.name: self.check(asked_query) for asked_query in self.group.asked}  # 3

    def _stop_server(self) -> None:
        self._server.stop()

    def _kill_server(self) -> None:
        """It comes back where it was: no query is to notice more than a pause."""
        port = urlsplit(self._address.url).port
        self._server.kill()
        self._server = server_process.start(self._folder / "data", port=port or 0, log=self._log)

    def _to_the_end(self) -> None:
        after = self.size.conf_after
        with self._engine(self.size.conf if after is None else after) as engine:
            again = self._start(engine)
            if again != self.ids:
                raise TryAgain(
                    "a query started from its checkpoint has another id than before the kill",
                    code="query_failed",
                )
            engine.begin(Drain())
            answers: list[dict[str, Any]] = []

            def is_drained() -> bool:
                with contextlib.suppress(Late):
                    answers.append(engine.wait_answer(POLL_S))
                return bool(answers)

            self._wait(None, is_drained)
            self._look()
            engine.ask(Stop(), STOP_TIMEOUT_S)

    @contextlib.contextmanager
    def _engine(self, conf: dict[str, str]) -> Iterator[Engine]:
        log = str(self._folder / "spark.log")
        engine = self._opening(Setup(SYSTEM, CORES, log, conf=conf), self._address)
        try:
            engine.wait_ready()
            yield engine
        finally:
            engine.stop(at_once=True)

    def _start(self, engine: Engine) -> dict[str, dict[str, str]]:
        ids = {}
        for asked in self.group.asked:
            start = Start(
                asked.query.name,
                dict(asked.streams),
                str(self._folder / asked.name),
                dict(asked.parameters),
                # A batch takes one commit of each input at least, so this makes it exactly one.
                rows_max=1,
                is_awaited=False,
            )
            ids[asked.name] = engine.ask(start, START_TIMEOUT_S)["ids"]
        return ids

    def _wait(self, engine: Engine | None, is_done: Callable[[], bool]) -> None:
        """Until `is_done`, which may block for a moment; TryAgain when nothing is committed."""
        seen, moved_s = -1, self._clock.monotonic_s()
        while True:
            self._look()
            if is_done():
                return
            now_s, committed = self._clock.monotonic_s(), sum(self._batches_told.values())
            if committed > seen:
                seen, moved_s = committed, now_s
            if now_s - moved_s > STALL_S:
                raise TryAgain(
                    f"the queries of {self.group.name} have committed nothing for {STALL_S:g} s",
                    code="query_failed",
                )
            if engine is not None:
                engine.ask(Look(), START_TIMEOUT_S)
                self._clock.sleep(POLL_S)

    def _look(self) -> None:
        """Count the batches committed since, and tell of each that was planned for."""
        known = self.client.queries()
        batches: dict[str, int] = {
            query.query: query.marker.batch + 1 for query in known if query.marker is not None
        }
        for asked in self.group.asked:
            for query in self.ids[asked.name].values():
                count = batches.get(query, 0)
                for batch in range(self._batches_told.get(query, 0), min(count, self.size.commits)):
                    self._tell(f"{asked.name}, batch {batch + 1} of {self.size.commits}")
                self._batches_told[query] = count

    def _answered(self, asked: Asked, before: Checked) -> Answered:
        after = self.check(asked)
        instances = {
            self.client.query(query_id).instance for query_id in self.ids[asked.name].values()
        }
        worse = max((before, after), key=lambda comparison: comparison.different)
        answered = Answered(
            asked.name,
            self.size.commits * self.size.events,
            batches_at_the_kill=min(before.batches.values()),
            batches=min(after.batches.values()),
            rows=after.rows,
            different=worse.different,
            instance=min(instances),
            differences=tuple(
                str(difference) for difference in worse.differences[:DIFFERENCES_KEPT]
            ),
        )
        return msgspec.structs.replace(answered, error=unchecked(answered, self.size))


def unchecked(answered: Answered, size: Size) -> str | None:
    """The reason why an answer without a wrong row says nothing; None if it does say something."""
    at_least = min(size.commits, BATCHES_MIN)
    if answered.batches < at_least:
        return f"it has committed {answered.batches} batches, and {at_least} are needed"
    if not answered.rows:
        return "it has written no row, so there was nothing to compare"
    if not 0 < answered.batches_at_the_kill < answered.batches or answered.instance < 2:
        return "its driver was not killed in the middle, or it was not started again"
    return None
