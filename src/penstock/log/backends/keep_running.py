"""Background threads that others wait for, which must not end with one fault."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import PenstockError

_LOG = logging.getLogger("penstock.log")


@contextmanager
def going_on(task_name: str) -> Iterator[None]:
    """Say that the task failed, in the log and with its trace, and go on behind the `with`.

    For one turn of a thread or task that has more turns to take. Whoever waits for what failed
    must be answered, or have it tried again, elsewhere.
    """
    try:
        yield
    except Exception as error:
        _LOG.error(
            "%s failed, and goes on with what comes next: %s: %s",
            task_name, type(error).__name__, error,
            exc_info=None if isinstance(error, PenstockError) else error,
        )  # fmt: skip
