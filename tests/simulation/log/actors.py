"""Who takes part in a simulated world of the log, and what can go wrong with each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.log.operations import CreateStream, Operation, Register
from penstock.log.retention.due import steps
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, StreamName
from penstock.settings.server import Settings
from simulation.log.early_run import EarlyRun
from simulation.log.expected_entries import Truth
from simulation.log.producers_and_queries import FREE_TAG, QUERY, Producer, Run
from simulation.log.readers import PositionReader, RawReader, Reader
from simulation.log.replica import Replica
from simulation.log.servers import PATIENCE, Client, Cluster, Server
from simulation.log.setup import INPUT, OUTPUT
from simulation.log.state_dump import Base
from simulation.log.stream_changes import Owner, SideProducer, SideReader, SideRun, columns
from simulation.log.tasks import Task, output_tag

DOWN_STEPS = 60
ZOMBIE_STEPS = 400


@dataclass(frozen=True)
class LogParts:
    """What the world is built from; a test plants a bug by putting another class here."""

    replica: type[Replica] = Replica
    base: type[Base] = Base
    server: type[Server] = Server
    producer: type[Producer] = Producer
    run: type[Run] = Run
    early_run: type[Run] = EarlyRun
    side_run: type[SideRun] = SideRun
    task: type[Task] = Task
    raw_reader: type[RawReader] = RawReader
    position_reader: type[PositionReader] = PositionReader
    steps: Callable[[StoreView, int, Settings], list[Operation]] = steps


@dataclass
class Line:
    """One writer that starts again when it has ended, and the zombies it has left.

    Who gives no sign is taken for dead: at `dead_by` at the latest, and sooner while it waits for
    the answer to its marker.
    """

    make: Callable[[int], Any]
    starts: int = 0
    current: Any = None
    dead_by: int | None = None
    zombies: list[tuple[Any, int]] = field(default_factory=list)

    def start(self) -> None:
        self.starts += 1
        self.dead_by = None
        self.current = self.make(self.starts)

    @property
    def everyone(self) -> list[Any]:
        return [self.current, *(zombie for zombie, _ in self.zombies)]


class Cast:
    """Producers, the query, tasks, readers and the collector of garbage, on one cluster."""

    def __init__(self, cluster: Cluster, truth: Truth, parts: LogParts) -> None:
        self.cluster, self.truth, self.parts = cluster, truth, parts
        self.rng, self.setup = cluster.rng, cluster.setup
        self.down: dict[Server, int] = {}
        self.story: list[str] = []
        self.faults = 0
        self.collector = Client("collector")
        self._make_streams()
        self.producers = [parts.producer(cluster, f"p{n}") for n in range(self.setup.producers)]
        run = parts.early_run if self.setup.early else parts.run
        self.query = Line(lambda number: run(cluster, truth, number))
        self.tasks = [self._task_line(f"task{n}") for n in range(self.setup.tasks)]
        self.owner, self.side_producer = Owner(cluster, truth), SideProducer(cluster)
        self.side = Line(lambda number: parts.side_run(cluster, truth, number))
        self.side_reader = SideReader(cluster, truth)
        for line in self.lines:
            line.start()
        self.readers = self._readers()

    @property
    def lines(self) -> list[Line]:
        return [self.query, self.side, *self.tasks]

    @property
    def changing(self) -> list[Client]:
        """Those who change streams and queries or live with that, and have something to do."""
        owners = [actor for actor in (self.owner, self.side_producer) if not actor.is_done]
        runs = [run for run in self.side.everyone if run.calls or not run.is_done]
        reader = [] if self.side_reader.is_done() else [self.side_reader]
        return [*owners, *runs, *reader]

    def _task_line(self, name: str) -> Line:
        self.cluster.agree(Register("group", name, StreamName(INPUT), BEFORE_ALL))
        return Line(lambda number: self.parts.task(self.cluster, self.truth, name, number))

    def _make_streams(self) -> None:
        """Before anything goes wrong."""
        for name in (INPUT, OUTPUT):
            stream, count = StreamName(name), self.setup.substreams
            self.cluster.agree(CreateStream(stream, columns(1), count, None))
        self.cluster.agree(Register("query", QUERY, StreamName(INPUT), BEFORE_ALL))

    def _readers(self) -> list[Reader]:
        cluster, truth, parts = self.cluster, self.truth, self.parts
        readers: list[Reader] = [parts.raw_reader(cluster, truth, FREE_TAG)]
        for place in range(self.setup.places):
            for stream in (INPUT, OUTPUT):
                readers.append(parts.position_reader(cluster, truth, stream, place))
                readers.append(parts.raw_reader(cluster, truth, f"s/{stream}/{place}"))
            readers += [
                parts.raw_reader(cluster, truth, output_tag(f"task{n}", place))
                for n in range(self.setup.tasks)
            ]
        if self.setup.places > 1:
            tags = [f"s/{OUTPUT}/{place}" for place in range(self.setup.places)]
            readers.append(parts.raw_reader(cluster, truth, *tags))
        return readers

    def time_passes(self) -> None:
        """Servers come back, zombies end, and who has ended starts again."""
        for server, until in list(self.down.items()):
            if self.cluster.step >= until:
                del self.down[server]
                server.start()
        for line in self.lines:
            line.zombies = [
                (zombie, until)
                for zombie, until in line.zombies
                if zombie.alive and until > self.cluster.step
            ]
            if not line.current.alive:
                line.start()
            if line.dead_by is not None and self._is_taken_for_dead(line, line.dead_by):
                self.replace(line)

    # What can go wrong.

    def fault(self) -> None:
        self.faults += 1
        faults = (
            lambda: self.crash_writer([self.query, self.query, self.query, self.side]),
            lambda: self.leave_zombie([self.query, self.query, self.query, self.side]),
            lambda: self.crash_writer(self.tasks),
            lambda: self.leave_zombie(self.tasks),
            self.crash_server,
            lambda: self.rng.choice([*self.readers, self.side_reader]).crash(),
            self.jump,
        )
        self.rng.choices(faults, self.setup.faults)[0]()

    def crash_writer(self, lines: list[Line]) -> None:
        if not lines:
            return
        line = self.rng.choice(lines)
        self.note(f"{line.current.name} crashed")
        line.current.alive = False
        line.start()

    def leave_zombie(self, lines: list[Line]) -> None:
        """Soon the old one goes on, and a new one starts beside it."""
        if lines:
            line = self.rng.choice(lines)
            line.dead_by = self.cluster.step + self.rng.randint(0, PATIENCE)

    def _is_taken_for_dead(self, line: Line, by: int) -> bool:
        marks = line.current.phase == "mark" and line.current.calls
        return self.cluster.step >= by or (marks and self.rng.random() < 0.2)

    def replace(self, line: Line) -> None:
        self.note(f"{line.current.name} is a zombie")
        until = self.cluster.step + self.rng.randint(1, ZOMBIE_STEPS)
        line.zombies.append((line.current, until))
        line.start()

    def crash_server(self) -> None:
        """One that has the log to itself has synced all it answered, but for early answers."""
        server = self.rng.choice(self.cluster.servers)
        if server.alive:
            is_lost = not self.cluster.alone and self.rng.random() < 0.3
            self.note(f"server {server.slot} {'lost its folder' if is_lost else 'crashed'}")
            if is_lost:
                server.lose_folder()
            else:
                server.crash()
            self.down[server] = self.cluster.step + self.rng.randint(1, DOWN_STEPS)

    def jump(self) -> None:
        """The wall clock moves, either way; the log's own time never goes back."""
        self.cluster.now_ms += self.rng.choice((-5_000, 3_600_000))

    def note(self, event: str) -> None:
        self.story.append(f"step {self.cluster.step}: {event}")
