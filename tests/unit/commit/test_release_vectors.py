"""The scripts that the plug-in's release must follow too are those of this one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from penstock.commit.events import Event
from penstock.commit.release import Release
from support.release_vectors import FILE, scripts, to_step

VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", VECTORS, ids=lambda script: script["name"])
def test_the_release_follows_the_script(script: dict[str, Any]) -> None:
    release = Release(
        script["first"],
        recorded=script["recorded"],
        with_log=script["with_log"],
        offsets_in_marker=script["offsets_in_marker"],
        behind=script["behind"],
    )
    for step in script["steps"]:
        assert to_step(release, msgspec.convert(step["event"], Event)) == step


def test_the_file_is_what_its_program_writes() -> None:
    assert scripts() == VECTORS


def test_every_kind_of_event_and_effect_is_in_the_scripts() -> None:
    steps = [step for script in VECTORS for step in script["steps"]]
    events = {step["event"]["type"] for step in steps}
    effects = {effect["type"] for step in steps for effect in step["effects"]}
    assert events == {
        *("offsets", "written", "durable", "commit", "delete", "lost", "done", "failed"),
    }
    assert effects == {"put offsets", "put marker", "put commit", "copy", "delete file", "stop"}
