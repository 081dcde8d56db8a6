"""Where a suite shows and writes what it found: the terminal, a result file, a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from penstock_lab.experiment.needs import is_installed, require_plot
from penstock_lab.experiment.report import Result, write


@dataclass(frozen=True)
class Outlet:
    """`done` is called once, before anything is shown."""

    console: Console
    json_file: Path | None = None
    plot_file: Path | None = None
    done: Callable[[], None] = lambda: None

    def require(self) -> None:
        """Raises BadCall if a picture is wanted and cannot be drawn here."""
        if self.plot_file is not None:
            require_plot(is_installed)

    @contextmanager
    def reporting(self, report: Callable[[Outlet], object]) -> Iterator[None]:
        """Report when the work within has ended. Interrupted, it reports what there is by then and
        goes on being interrupted."""
        try:
            yield
        finally:
            self.done()
            report(self)

    def put(
        self,
        whole: Result,
        show: Callable[[Console], None],
        draw: Callable[[Path], None] | None = None,
        *,
        is_empty: bool = False,
    ) -> None:
        """Write the file in any case; show and draw where there is something to see."""
        if self.json_file is not None:
            write(whole, self.json_file)
        if is_empty:
            return
        show(self.console)
        if self.plot_file is not None and draw is not None:
            draw(self.plot_file)
