"""Processes of our own without pandas, which they do not need and Arrow would import."""

from __future__ import annotations

import sys
from collections.abc import Sequence


class NoPandas:
    """A finder of modules, asked before all others, for which there is no pandas."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("this process does without pandas", name=name)


def leave_out_pandas() -> None:
    """Have Arrow take this process for one in which pandas is not installed.

    Where it is, Arrow imports it for the first array that is made of Python's values: a second of
    processor time of every server and every command, and a server's memory for as long as it runs.
    Only for a process of our own: nothing in it can import pandas any more.
    """
    sys.meta_path.insert(0, NoPandas())
