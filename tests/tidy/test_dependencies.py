"""Dependencies: bounded above where we rest on their insides, pinned for tests, audited."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from importlib import metadata

import lmdb
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from support.audit import verdict
from support.sources import ROOT

INSIDES = {
    # The folder's check before the file is mapped reads LMDB's pages as 0.9 lays them out.
    "lmdb": "4",
    # The version of a server is a private field of its client.
    "nats-py": "3",
    # Connections stand between the socket and its protocol.
    "aiohttp": "4",
}


def laboratory_requirements() -> tuple[str, ...]:
    """What the laboratory needs beside the product, as its build reads it, without that build."""
    tree = ast.parse((ROOT / "lab" / "hatch_build.py").read_text(encoding="utf-8"))
    (listed,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEPENDENCIES"
    )
    texts: tuple[str, ...] = ast.literal_eval(listed)
    return texts


def requirements() -> list[Requirement]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"].values()
    texts = [*project["dependencies"], *(text for extra in extras for text in extra)]
    texts += laboratory_requirements()
    named = [Requirement(text) for text in texts]
    return [requirement for requirement in named if requirement.name != "penstock"]


def pinned() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (re.fullmatch(r"([\w.-]+)==(\S+)", line) for line in lines if line[:1] != "#")
    return {canonicalize_name(pair[1]): Version(pair[2]) for pair in pairs if pair is not None}


@pytest.mark.parametrize(("name", "first_unknown"), INSIDES.items())
def test_what_we_rest_on_the_insides_of_has_an_upper_bound(name: str, first_unknown: str) -> None:
    (requirement,) = (each for each in requirements() if each.name == name)
    assert not requirement.specifier.contains(first_unknown)
    assert requirement.specifier.contains(metadata.version(name))


def test_the_store_s_library_lays_its_file_out_as_we_read_it() -> None:
    assert lmdb.version()[:2] == (0, 9)


def test_every_requirement_is_pinned_for_tests_within_its_bounds() -> None:
    versions = pinned()
    for requirement in requirements():
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{name} is not in constraints.txt"
        assert requirement.specifier.contains(versions[name]), requirement


PLAIN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "not found"}
KNOWN = {"name": "c", "version": "1", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}


@pytest.mark.parametrize(
    ("packages", "sentence", "failed"),
    [
        ([PLAIN], "audit: 1 packages without a known vulnerability", False),
        ([PLAIN, SKIPPED], "vulnerability; not looked up: b", False),
        ([SKIPPED], "audit: skipped, because none of 1 packages could be looked up", False),
        ([PLAIN, SKIPPED, KNOWN], "audit: failed, because of known vulnerabilities: c: CVE-1,",
         True),
    ],
)  # fmt: skip
def test_an_audit_says_what_it_found_or_that_it_could_not_look(
    packages: list[dict[str, object]], sentence: str, failed: bool
) -> None:
    outcome = verdict(json.dumps({"dependencies": packages}), "")
    assert sentence in outcome.sentence
    assert outcome.failed is failed


def test_an_audit_without_a_data_base_or_its_program_is_skipped_by_name() -> None:
    for complaint in ("No module named pip_audit", "first\nConnectionError: no route\n"):
        outcome = verdict("", complaint)
        assert outcome.sentence.startswith("audit: skipped, because ")
        assert complaint.strip().splitlines()[-1] in outcome.sentence
        assert not outcome.failed
