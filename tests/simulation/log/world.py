"""A seeded, single-threaded world around the log: servers, writers, readers, and everything that
can go wrong between them."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, zip_longest
from typing import Any

from penstock.log.invariants import violations
from penstock.settings.server import Settings
from simulation.log.actors import Cast, LogParts
from simulation.log.expected_entries import Truth
from simulation.log.producers_and_queries import FREE_TAG, QUERY
from simulation.log.servers import Cluster, Server
from simulation.log.setup import INPUT, OUTPUT, STEP_MS, LogSetup
from simulation.log.tasks import output_tag
from simulation.release.setup import Violation

SYNC_RATE = 0.1
TRIES = 30
QUIET = list(accumulate((4.0, 1.0, 1.0, 1.0, 2.0, 8.0, 1.0, 0.2, 0.01, 0.5, 1.0)))
IDLE_STEPS = 15
"""How far time moves on when nobody has anything to do."""
STORY_LINES = 40
CHECK_EVERY = 100
"""Steps between two looks at everything a copy holds: reading all of it takes as long as many."""


@dataclass(frozen=True)
class LogOutcome:
    """What a simulation saw: enough to tell that it did not merely sleep."""

    seed: int
    setup: LogSetup
    steps: int
    operations: int
    runs: int
    faults: int
    batches: int
    spans: int
    trims: int
    changes: int
    loads: int
    lost: int


class LogWorld:
    def __init__(self, seed: int, setup: LogSetup | None, parts: LogParts) -> None:
        self.rng = random.Random(seed)
        self.setup = setup or LogSetup.draw(self.rng)
        self.parts = parts
        self.truth = Truth()
        self.cluster = Cluster(self.rng, self.setup, parts.server, parts.replica)
        self.cluster.base = parts.base()
        self.cluster.observe = self.truth.observe
        self.cum_speeds = list(accumulate(self.setup.speeds))
        self.settings = Settings(
            trim_after_ms=self.setup.trim_after_ms,
            trim_entries_max=3,
            markers_kept_min=1,
            producer_idle_ms_max=self.setup.repeats_kept_ms,
        )
        self.cast = Cast(self.cluster, self.truth, parts)

    def live(self) -> int:
        """Step until all input is copied and everything read; how many steps that took."""
        cluster, setup = self.cluster, self.setup
        for lived in count(1):
            if cluster.step >= setup.steps_max:
                break
            cluster.step += 1
            cluster.now_ms += STEP_MS
            faults = cluster.step < setup.fault_steps
            if faults and self.rng.random() < setup.fault_rate:
                self.cast.fault()
            elif not self.act() and not faults:
                cluster.step += IDLE_STEPS
            self.cast.time_passes()
            if lived % CHECK_EVERY == 0 and cluster.touched is not None:
                self.check(cluster.touched)
            if not faults:
                self.calm_down()
                if cluster.step % 8 == 0 and self.is_done():
                    self.at_end()
                    return cluster.step
        raise Violation(f"no end after {setup.steps_max} steps: {self._waiting()}")

    def check(self, server: Server) -> None:
        """Read a whole copy and compare every index with the entries."""
        for violation in violations(server.replica.view()):
            raise Violation(f"{violation}, in the copy of server {server.slot}")

    def calm_down(self) -> None:
        """Nothing goes wrong any more, and everybody keeps up."""
        self.cum_speeds = QUIET
        self.cluster.lost = self.cluster.repeated = 0.0

    def act(self) -> bool:
        """One of the things that may happen next, the slow ones less often; False if none did."""
        for _ in range(TRIES):
            kind = KINDS[bisect(self.cum_speeds, self.rng.random() * self.cum_speeds[-1])]
            if things := kind[0](self):
                kind[1](self, self.rng.choice(things))
                return True
        return False

    def follow(self, server: Server) -> None:
        server.follow()
        if self.rng.random() < SYNC_RATE:
            server.replica.sync()

    def collect(self) -> None:
        """Any server may take steps, from what it knows; each is decided on when it is applied."""
        server = self.cluster.any_up()
        now_ms = self.cluster.step * STEP_MS + self.setup.started_at_ms
        for step in self.parts.steps(server.replica.view(), now_ms, self.settings):
            self.cluster.call(self.cast.collector, step)

    def write_down(self) -> None:
        """The state, if nothing is left to purge since the last time; else purge some of that."""
        cluster = self.cluster
        if cluster.base.asked:
            cluster.base.purge(self.rng, cluster.stream)
        else:
            cluster.base.write_down(cluster.any_up().replica, cluster.stream)

    def put_late(self) -> None:
        place = self.rng.randrange(len(self.cluster.late))
        self.cluster.put(self.cluster.late.pop(place))

    def is_done(self) -> bool:
        return (
            all(producer.is_done for producer in self.cast.producers)
            and not any(line.zombies for line in self.cast.lines)
            and not self.cast.changing
            and not self.cast.down
            and not self.cluster.mail
            and not self.cluster.behind()
            and self._is_copied()
            and all(reader.is_done() for reader in self.cast.readers)
        )

    def _is_copied(self) -> bool:
        inputs = sum(len(self.truth.shown(f"s/{INPUT}/{n}", raw=False)) for n in self._places())
        outputs = sum(len(self.truth.shown(f"s/{OUTPUT}/{n}", raw=False)) for n in self._places())
        return inputs == outputs and all(
            inputs
            == sum(
                len(self.truth.shown(output_tag(f"task{task}", n), raw=True))
                for n in self._places()
            )
            for task in range(self.setup.tasks)
        )

    def _places(self) -> range:
        return range(self.setup.places)

    def at_end(self) -> None:
        """Exactly once, from the producers' own word to every reader; and every copy is whole."""
        for server in self.cluster.servers:
            self.check(server)
        first, *others = self.cluster.servers
        for server in others:
            for row, same in zip_longest(server.replica.rows(), first.replica.rows()):
                if row != same:
                    raise Violation(f"server {server.slot} has {row}, and server 0 has {same}")
        copied = [
            value.partition("|")[0]
            for n in self._places()
            for value in self._values(f"s/{OUTPUT}/{n}")
        ]
        came = [value for n in self._places() for value in self._values(f"s/{INPUT}/{n}")]
        said = {value for producer in self.cast.producers for value in producer.answers}
        if sorted(copied) != sorted(came) or len(set(came)) < len(came) or said - set(came):
            raise Violation(f"of {sorted(said)} came {sorted(came)}, and {sorted(copied)} came out")
        free = self._values(FREE_TAG)
        answered = {value for producer in self.cast.producers for value in producer.free_answers}
        lost = answered - set(free)
        if lost or len(free) != len(set(free)):
            raise Violation(f"invariant 8: of the free records {lost} are lost; there is {free}")

    def _values(self, tag: str) -> list[str]:
        return [row.value for row in self.truth.shown(tag, raw=True)]

    def _waiting(self) -> str:
        cast = self.cast
        return (
            f"producers {[producer.is_done for producer in cast.producers]}, "
            f"query {cast.query.current.phase}, "
            f"tasks {[line.current.phase for line in cast.tasks]}, copied {self._is_copied()}, "
            f"readers {[reader.is_done() for reader in cast.readers]}, changing "
            f"{[actor.name for actor in cast.changing]}"
        )


Things = Callable[[LogWorld], Sequence[Any]]


def reachable(things: Things) -> Things:
    """Those that turn to a server: while all are down they wait."""
    return lambda world: things(world) if world.cluster.up() else ()


# In the order of `LogSetup.speeds`.
KINDS: tuple[tuple[Things, Callable[[LogWorld, Any], object]], ...] = (
    (
        lambda world: (world,) if world.cluster.due() else (),
        lambda world, _: world.cluster.deliver(),
    ),
    (
        reachable(lambda world: [actor for actor in world.cast.producers if not actor.is_done]),
        lambda world, actor: actor.act(),
    ),
    (reachable(lambda world: world.cast.query.everyone), lambda world, actor: actor.act()),
    (
        reachable(lambda world: [actor for line in world.cast.tasks for actor in line.everyone]),
        lambda world, actor: actor.act(),
    ),
    (
        lambda world: [server for server in world.cluster.up() if server.has_news()],
        lambda world, server: world.cluster.publish(server),
    ),
    (lambda world: world.cluster.behind(), LogWorld.follow),
    (
        reachable(lambda world: [actor for actor in world.cast.readers if not actor.is_done()]),
        lambda world, actor: actor.act(),
    ),
    (
        reachable(lambda world: () if world.cast.collector.calls else (world,)),
        lambda world, _: world.collect(),
    ),
    (
        reachable(lambda world: () if world.cluster.alone else (world,)),
        lambda world, _: world.write_down(),
    ),
    (lambda world: world.cluster.late, lambda world, _: world.put_late()),
    (reachable(lambda world: world.cast.changing), lambda world, actor: actor.act()),
)


def simulate_log(
    seed: int, setup: LogSetup | None = None, *, parts: LogParts | None = None
) -> LogOutcome:
    """Run the log and its users through everything that follows from the seed.

    Every operation applied is checked against what came before it, every read against what is
    committed; every `CHECK_EVERY` steps the copy that changed last is checked as a whole, and in
    the end all of them are. After some hundred steps nothing crashes any more, and all input must
    come out everywhere. Raises `Violation` with the last faults as a story; the same seed tells the
    same story. `setup` fixes what is otherwise drawn from the seed.
    """
    world = LogWorld(seed, setup, parts or LogParts())
    try:
        steps = world.live()
    except Violation as violation:
        call = f"simulate_log({seed}, {world.setup})"
        again = f"from simulation.log.world import LogSetup, simulate_log; {call}"
        story = "\n".join(world.cast.story[-STORY_LINES:])
        raise Violation(
            f'{violation}\nsee it again: python -c "{again}"\nwhat went wrong:\n{story}'
        ) from None
    finally:
        world.cluster.close()
    truth = world.truth
    return LogOutcome(
        seed,
        world.setup,
        steps,
        truth.operations,
        world.cast.query.starts,
        world.cast.faults,
        truth.marked_by.get(QUERY, 0),
        truth.spans,
        truth.trims,
        truth.lives.changes,
        world.cluster.base.loads,
        truth.lost,
    )
