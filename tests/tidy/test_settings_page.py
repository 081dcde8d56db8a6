"""Settings are written once, in code, and their page is made from them."""

from __future__ import annotations

import ast

from penstock.settings.page import settings_page
from penstock.settings.plugin import PREFIX
from support.sources import ROOT, modules

SETTINGS = {f"penstock.settings.{name}" for name in ("devices", "plugin", "prefetch")}


def test_the_page_of_settings_is_up_to_date() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == settings_page(), "run: python -m penstock.settings > docs/settings.md"


def test_the_keys_of_the_plug_in_are_written_in_one_place() -> None:
    wrong = [
        f"{module.name}: {node.value}"
        for module in modules()
        if module.name not in SETTINGS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(PREFIX)
    ]
    assert not wrong
