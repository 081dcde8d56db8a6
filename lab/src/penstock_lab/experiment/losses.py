"""Losses of results that were visible, system by system, when something fails for good.

A ratio says little unless both sides survive the same; so this stands beside every one.
"""

from __future__ import annotations

LOSSES = ("a process", "the machine", "its disk", "a log server")
NOTHING = "nothing"
UNSYNCED = "files not synced"
LOG = "the log"
LOG_AND_STATE = "the log, 8 batches of state"

_IN_LOCATION = (NOTHING, UNSYNCED, LOG, LOG)
_IN_LOG = (NOTHING, NOTHING, LOG_AND_STATE, LOG_AND_STATE)
_BETWEEN_FILES = (NOTHING, UNSYNCED, "files on it", "has none")

SPARKS = ("default", "zstream", "tuned", "tuned+files", "spark", "spark-archive")
"""Systems between streams of the log whose commit is Spark's."""
OURS = ("asyncckpt", "full", "penstock", "penstock-log", "penstock-bare")
"""Systems whose commit follows behind the query."""
BETWEEN_FILES = ("default-files", "tuned-files", "plug-in-sync", "plug-in")
LOST: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(SPARKS, _IN_LOCATION),
    **dict.fromkeys(OURS, _IN_LOG),
    "full-replicated": (NOTHING, NOTHING, NOTHING, NOTHING),
    **dict.fromkeys(BETWEEN_FILES, _BETWEEN_FILES),
}
"""Of each system that shows results, what is lost by each of `LOSSES`."""

MEANING = (
    "a process: any one, killed; the machine: it stops and comes back with its disk; its disk: of "
    "the machine that Spark and Penstock's server are on, the checkpoint location is elsewhere; a "
    "log server: one that keeps the log, with its disk. files not synced: neither Spark nor "
    "Penstock syncs what it writes to a local location, the log is synced before a row is visible. "
    "8 batches: so many the log may have and a remote location not yet "
    "(spark.penstock.commit.behind). three copies: on servers of three machines; here they share "
    "one"
)

_LOCATION = "in the checkpoint location"
_CHANGES = "as changes in the log"
STATE = {
    **dict.fromkeys((*SPARKS, *BETWEEN_FILES, "spark+switches"), _LOCATION),
    **dict.fromkeys(OURS, "in the log, one copy"),
    "full-replicated": "in the log, three copies",
    "marker": _CHANGES,
    "transaction": _CHANGES,
    "aligned": "in files that are synced",
    "unsafe": "nowhere",
}
"""Where the state of a batch, or of a task's commit, is when its rows are visible, or from where it
is computed again."""


def beside(*systems: str) -> str:
    """A clause for the sentence of a ratio: where each side has the state of what is visible."""
    each = ", ".join(f"{system} {STATE[system]}" for system in dict.fromkeys(systems))
    return f"state of what is visible: {each}"
