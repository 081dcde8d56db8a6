"""The suite: every query over generated events and recordings, and the oracle after every batch."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from penstock.errors import BadCall
from penstock_lab import queries as registry
from penstock_lab.experiment.campaigns import fill
from penstock_lab.experiment.needs import require_campaigns, require_port, require_queries
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.report import Result, result
from penstock_lab.suites.answers import groups
from penstock_lab.suites.answers.groups import Group
from penstock_lab.suites.answers.report import figures, show
from penstock_lab.suites.answers.trial import Answered, Size, Tell, Trial
from penstock_lab.workloads import replay

SUITE = "answers"
# Compiling hot code well costs a short run more than it saves.
QUICK = Size(26, 5_000, {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
FULL = Size(40, 25_000, {"spark.driver.memory": "3g"})

Run = Callable[[Group, Size, Path, Tell], list[Answered]]


class Plan(msgspec.Struct, frozen=True):
    """What will be checked."""

    queries: tuple[str, ...]
    size: Size
    redis: str
    samples: Path
    """The folder that holds LightSaber's samples, if they are there."""


class Skipped(msgspec.Struct, frozen=True):
    """What cannot be checked here."""

    what: str
    why: str


def plan_of(names: tuple[str, ...], *, quick: bool, redis: str, samples: Path) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not."""
    wanted = tuple(dict.fromkeys(name.lower() for name in names))
    unknown = [name for name in wanted if name not in registry.ALL]
    if unknown:
        raise BadCall(
            f"there is no query {', '.join(unknown)}; there is {', '.join(registry.ALL)}",
            code="unknown_query",
        )
    return Plan(wanted or tuple(registry.ALL), QUICK if quick else FULL, redis, samples)


def parts(plan: Plan) -> tuple[list[Group], list[Skipped]]:
    """The groups that can be run, and what is left out of them and why."""
    wanted = frozenset(plan.queries)
    found, skipped = [groups.nexmark(), groups.linear_road(), groups.cluster()], []
    if "ysb" in wanted:
        try:
            require_campaigns(plan.redis)
            found.append(groups.ads(plan.redis))
        except BadCall as error:
            skipped.append(Skipped("ysb", error.message))
    if wanted & {*registry.LINEAR_ROAD, *registry.CLUSTER}:
        why = replay.missing(plan.samples)
        if why is None:
            found.append(groups.recorded(plan.samples))
        else:
            skipped.append(Skipped(groups.REPLAY, why))
    chosen = (group.only(wanted) for group in found)
    return [group for group in chosen if group.asked], skipped


def steps(plan: Plan) -> int:
    """How often `tell` will be called: once for every batch of every stage."""
    return sum(group.stages for group in parts(plan)[0]) * plan.size.commits


def tried(group: Group, size: Size, folder: Path, tell: Tell) -> list[Answered]:
    with Trial(group, size, folder, tell) as trial:
        return trial.run()


def run(
    plan: Plan,
    folder: Path,
    tell: Tell,
    outlet: Outlet,
    *,
    trying: Run = tried,
) -> bool:
    """Run, show, write; whether every answer was right and none was left unchecked by a failure."""
    require_queries(plan.queries)
    require_port()
    chosen, skipped = parts(plan)
    answered: list[Answered] = []
    with outlet.reporting(partial(_report, plan, answered, skipped)):
        for one in _each(plan, chosen, folder, tell, trying):
            answered += one
    return all(one.is_right for one in answered)


def _report(plan: Plan, answered: list[Answered], skipped: list[Skipped], outlet: Outlet) -> None:
    left_out = [(one.what, one.why) for one in skipped]
    outlet.put(
        in_file(plan, answered, skipped),
        lambda console: show(console, answered, figures(answered), left_out),
        is_empty=not answered and not skipped,
    )


def in_file(plan: Plan, answered: list[Answered], skipped: list[Skipped]) -> Result:
    settings = {
        "queries": plan.queries,
        "seed": groups.SEED,
        **msgspec.to_builtins(plan.size),
        "skipped": msgspec.to_builtins(skipped),
    }
    runs = [msgspec.to_builtins(one) for one in answered]
    return result(SUITE, settings, runs, figures(answered))


def _each(
    plan: Plan, chosen: list[Group], folder: Path, tell: Tell, trying: Run
) -> Iterator[list[Answered]]:
    for group in chosen:
        if group.name == "ysb":
            fill(plan.redis, groups.SEED)
        place = Path(tempfile.mkdtemp(prefix=f"penstock-answers-{group.name}-", dir=folder))
        try:
            yield trying(group, plan.size, place, tell)
        finally:
            shutil.rmtree(place, ignore_errors=True)
