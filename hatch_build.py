"""Puts the plug-in's jar into the wheel; an editable install leaves that to `make jar`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class JarBuildHook(BuildHookInterface[Any]):
    """Compiles the jar before the wheel's files are collected; unchanged inputs cost nothing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        spec = importlib.util.spec_from_file_location("penstock_jar", root / "jvm" / "build.py")
        assert spec is not None
        assert spec.loader is not None
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        jar, _ = script.build(root)
        build_data["artifacts"].append(jar.relative_to(root).as_posix())
