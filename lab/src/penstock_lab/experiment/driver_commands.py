"""Commands to the Spark process of a benchmark, how it is set up, and its answer."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from penstock_lab.experiment.plan import LOCAL


class Setup(msgspec.Struct, frozen=True):
    """Setup of the session. The server, if rows are in the log, is told by the environment."""

    system: str
    cores: int
    log: str
    conf: dict[str, str] = {}
    """Settings beyond the system's."""
    tells_commits: bool = False
    """Whether a query that stops tells of its batches, of its commits' steps, and of memory."""
    master: str | None = None
    """A cluster's address; None: this process alone, with as many threads as cores."""


class Start(msgspec.Struct, frozen=True, tag=True):
    """Start a query: each stage from and to the streams (or folders) it is given names for."""

    query: str
    streams: dict[str, str]
    folder: str
    """For checkpoints and, between files, for rows."""
    parameters: dict[str, Any] = {}
    rows_max: int | None = None
    """The most rows of a batch from each stream; a batch has one commit of it at least."""
    is_awaited: bool = True
    """Whether to answer only when every stage waits for rows."""
    store: str = LOCAL
    """Where checkpoints are: local, or behind a declared delay."""
    every_s: float = 0.0
    """The trigger interval; 0: a batch begins when the one before is done."""
    options: dict[str, str] = {}
    """Of every source of the log: a deadline, a policy."""
    pool: str | None = None
    """The pool of Spark's scheduler that its jobs go to, as a user would choose one."""
    conf: dict[str, str] = {}
    """Settings of the session for this query alone."""


class Look(msgspec.Struct, frozen=True, tag=True):
    """Say whether every query still runs, and which batch of each stage was the last to end."""


class Count(msgspec.Struct, frozen=True, tag=True):
    """Tell what caches in front of state have counted since the last such command."""


class Delay(msgspec.Struct, frozen=True, tag=True):
    """Have declared reads of state take so long from now on, in all queries of the process."""

    ms: int


class Drain(msgspec.Struct, frozen=True, tag=True):
    """Work off everything that is there, stage by stage."""


class Tell(msgspec.Struct, frozen=True, tag=True):
    """Tell what the batches so far took, and go on."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Stop what runs and tell what its batches took."""


Command: TypeAlias = Start | Look | Count | Delay | Drain | Tell | Stop


class Answer(msgspec.Struct, frozen=True):
    """To every command: `error` is a sentence, `said` what it asked for."""

    said: dict[str, Any] = {}
    error: str | None = None
