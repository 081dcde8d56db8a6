"""Known vulnerabilities of the packages in constraints.txt, looked up by pip-audit.

Run by `make audit`. It fails for a package with one, and where nothing can be looked up it says
that it was skipped and why: an audit of nothing is not one that found nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
TIMEOUT_S = 120.0


class Verdict(NamedTuple):
    """A sentence, and whether the audit failed."""

    sentence: str
    failed: bool = False


def verdict(output: str, complaints: str) -> Verdict:
    """What pip-audit's output comes to; its exit status says the same for a package with a
    vulnerability and for a data base that it cannot reach."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        lines = complaints.strip().splitlines() or ["it said nothing"]
        return Verdict(f"audit: skipped, because pip-audit cannot look packages up: {lines[-1]}")
    known = {
        package["name"]: [each["id"] for each in package["vulns"]]
        for package in packages
        if package.get("vulns")
    }
    if known:
        named = "; ".join(f"{name}: {', '.join(ids)}" for name, ids in sorted(known.items()))
        return Verdict(f"audit: failed, because of known vulnerabilities: {named}", failed=True)
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    if len(skipped) == len(packages):
        return Verdict(
            f"audit: skipped, because none of {len(packages)} packages could be looked up: the "
            "data base knows none of them"
        )
    left_out = f"; not looked up: {', '.join(skipped)}" if skipped else ""
    return Verdict(
        f"audit: {len(packages) - len(skipped)} packages without a known vulnerability{left_out}"
    )


def audit() -> Verdict:
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS), "--no-deps",
               "--disable-pip", "--progress-spinner", "off", "--format", "json"]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict(f"audit: skipped, because there was no answer within {TIMEOUT_S:g} s")
    return verdict(done.stdout, done.stderr)


if __name__ == "__main__":
    outcome = audit()
    print(outcome.sentence)
    sys.exit(outcome.failed)
