"""Code that the README shows."""

from __future__ import annotations

import re

from support.wheels import ROOT


def blocks(language: str) -> list[str]:
    """All blocks of code in a language, in order."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
