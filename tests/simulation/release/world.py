"""A seeded, single-threaded world around `Release`: one query, its stores, and everything that can
go wrong with them."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from penstock.commit.release import Release
from simulation.release.checks import Checks
from simulation.release.driver import Run
from simulation.release.executors import Attempt, Executor, Message
from simulation.release.setup import Setup, Violation
from simulation.release.shared import Ground
from simulation.release.stores import Location, Log

ZOMBIE_STEPS = 300
STORY_LINES = 60
TRIES = 40


@dataclass(frozen=True)
class Parts:
    """What the world is built from; a test plants a bug by putting another class here."""

    release: type[Release] = Release
    run: type[Run] = Run
    executor: type[Executor] = Executor
    log: type[Log] = Log
    location: type[Location] = Location


@dataclass(frozen=True)
class Outcome:
    """What a simulation saw: enough to tell that it did not merely sleep."""

    seed: int
    setup: Setup
    steps: int
    runs: int
    faults: int


class World:
    def __init__(self, seed: int, setup: Setup | None, parts: Parts) -> None:
        self.parts = parts
        self.ground = Ground(seed, setup, parts.log, parts.location)
        self.rng, self.setup = self.ground.rng, self.ground.setup
        self.checks = Checks(self.ground)
        self.cum_speeds = list(accumulate(self.setup.speeds))
        self.runs = 0
        self.faults = 0
        self.zombie: Run | None = None
        self.zombie_left = 0
        self.run = self._start()

    def live(self, steps: int) -> int:
        """Step until the query has done its batches; how many steps that took."""
        for step in range(steps):
            self.step(faults=step < self.setup.fault_steps)
            self.checks.check()
            if self.zombie is None and self.run.is_drained():
                self.checks.at_end()
                return step
        raise Violation(f"no end after {steps} steps: the query is stuck at {self.run.phase}")

    def step(self, *, faults: bool) -> None:
        if self.setup.early and faults and self.rng.random() < self.setup.fault_rate:
            self.faults += 1
            self.ground.log.crash()
        if faults and self.rng.random() < self.setup.fault_rate:
            self.fault()
        else:
            run = self.run
            if self.zombie is not None and self.rng.random() < 0.5:
                run = self.zombie
            self.act(run)
        if self.zombie is not None:
            self.run.beside_another = True
            self.zombie_left -= 1
            if self.zombie_left <= 0 or self.zombie.ended is not None:
                self.zombie = None
        if self.run.ended is not None:
            self.ground.note("ended", (self.run.instance, self.run.ended))
            self.run = self._start()

    def _start(self) -> Run:
        self.runs += 1
        return self.parts.run(self.ground, self.parts.release, self.parts.executor)

    def act(self, run: Run) -> None:
        """Do one of the things that may happen next in a run, the slow ones less often."""
        for _ in range(TRIES):
            kind = KINDS[bisect(self.cum_speeds, self.rng.random() * self.cum_speeds[-1])]
            if things := kind.things(run):
                run.waits = False
                kind.act(self, run, self.rng.choice(things))
                return
        run.waits = False

    def drive(self, run: Run, _: Run) -> None:
        """A driver that has to wait is not asked again before something else has happened."""
        run.waits = not run.step()

    def advance(self, run: Run, attempt: Attempt) -> None:
        """An attempt goes on, or is killed where another has won."""
        lost = attempt.batch < run.batch or attempt.partition in run.winners
        if lost and self.rng.random() < 0.3:
            run.attempts.remove(attempt)
        elif attempt.executor.name in run.executors:
            attempt.executor.advance(attempt)

    def deliver(self, run: Run, message: Message) -> None:
        """An ack arrives, in any order; one whose answer is lost is sent once more."""
        if self.rng.random() >= self.setup.fault_rate:
            run.outbox.remove(message)
        run.tell(message.event)

    # What can go wrong.

    def fault(self) -> None:
        self.faults += 1
        faults = (
            self.crash_driver,
            self.leave_zombie,
            self.crash_executor,
            self.fail_attempt,
            self.speculate,
            self.write_twice,
        )
        self.rng.choices(faults, self.setup.faults)[0](self.run)

    def crash_driver(self, run: Run) -> None:
        run.end("the driver crashed")

    def leave_zombie(self, run: Run) -> None:
        """The old driver and its executors go on, and a new one starts beside them."""
        self.zombie, self.zombie_left = run, self.rng.randint(1, ZOMBIE_STEPS)
        run.beside_another = True
        self.ground.note("zombie", run.instance)
        self.run = self._start()

    def crash_executor(self, run: Run) -> None:
        if run.executors:
            executor = run.executors.pop(self.rng.choice(list(run.executors)))
            run.dead.append(executor.name)
            run.outbox[:] = [
                message
                for message in run.outbox
                if message.sender != executor.name or self.rng.random() < 0.5
            ]
            self.ground.note("executor crashed", executor.name)
            run.add_executor(executor.host)

    def fail_attempt(self, run: Run) -> None:
        if run.attempts:
            attempt = self.rng.choice(run.attempts)
            run.attempts.remove(attempt)
            self.ground.note("attempt failed", attempt.number)

    def speculate(self, run: Run) -> None:
        """Another attempt beside one that runs already, on any executor."""
        waiting = [
            attempt.partition
            for attempt in run.attempts
            if attempt.batch == run.batch and attempt.partition not in run.winners
        ]
        if waiting and run.phase == "compute" and run.executors:
            run.launch(self.rng.choice(waiting))

    def write_twice(self, run: Run) -> None:
        written = [
            attempt
            for attempt in run.attempts
            if attempt.stage in ("sink", "end") and attempt.executor.name in run.executors
        ]
        if written:
            attempt = self.rng.choice(written)
            attempt.executor.write(attempt)

    def story(self) -> str:
        lines = [f"{kind}: {_plain(noted)}" for kind, noted in self.ground.journal[-STORY_LINES:]]
        return "\n".join(lines)


@dataclass(frozen=True)
class Kind:
    """A kind of thing that goes on in a run: those there are now, and one of them going on."""

    things: Callable[[Run], Sequence[Any]]
    act: Callable[[World, Run, Any], object]


# In the order of `Setup.speeds`.
KINDS = (
    Kind(lambda run: () if run.waits else (run,), World.drive),
    Kind(lambda run: run.attempts, World.advance),
    Kind(lambda run: run.outbox, World.deliver),
    Kind(Run.to_copy, lambda world, run, copy: copy[0].copy(copy[1])),
    Kind(lambda run: run.jobs_of(log=True), lambda world, run, job: run.work(job)),
    Kind(lambda run: run.jobs_of(log=False), lambda world, run, job: run.work(job)),
    Kind(Run.to_show, lambda world, run, snapshot: snapshot[0].show(snapshot[1])),
    Kind(lambda run: run.dead, lambda world, run, name: run.tell_loss(name)),
)


def _plain(noted: Any) -> Any:
    if isinstance(noted, tuple) and noted and isinstance(noted[0], Run):
        return (f"run {noted[0].instance}", *noted[1:])
    return noted


def simulate(seed: int, setup: Setup | None = None, *, parts: Parts | None = None) -> Outcome:
    """Run one query through everything that follows from the seed, with every invariant checked
    after every step.

    After some hundred steps nothing goes wrong any more, and the query must come to its end.
    Raises `Violation` with the last steps as a story; the same seed tells the same story. `setup`
    fixes what is otherwise drawn from the seed.
    """
    world = World(seed, setup, parts or Parts())
    try:
        steps = world.live(world.setup.steps_max)
    except Violation as violation:
        again = (
            f"from simulation.release.world import Setup, simulate; simulate({seed}, {world.setup})"
        )
        raise Violation(
            f'{violation}\nsee it again: python -c "{again}"\nhow it came to that:\n{world.story()}'
        ) from None
    return Outcome(seed, world.setup, steps, world.runs, world.faults)
