"""README's example, word for word, where the wheel and its extra `spark` are all there is."""

from __future__ import annotations

import sys
from pathlib import Path

from support.readme import blocks
from support.wheels import link_packages, required_packages, run, unpack_wheels


def test_the_python_example_runs_with_the_wheel_and_its_extra(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    folder = unpack_wheels(tmp_path / "packages", wheel)
    packages = str(link_packages(folder, required_packages("penstock", "spark")))
    (example,) = blocks("python")
    (tmp_path / "example.py").write_text(example)
    # A process of its own: the example starts Spark and a server itself.
    done = run(sys.executable, "-S", "example.py", cwd=tmp_path, PYTHONPATH=packages)
    assert done.returncode == 0, done.stderr[-3000:]
    # A bid is in five windows of ten seconds that start every two.
    assert "5 windows" in done.stdout
