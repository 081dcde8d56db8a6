"""Positions of a stream as people write them: earliest, latest, or a number."""

from __future__ import annotations

from typing import Any

import click

from penstock.client import Client


class PositionText(click.ParamType[str]):
    """`earliest`, `latest` or the digits of a position, kept as text."""

    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.isdigit() and text not in ("earliest", "latest"):
            self.fail("give earliest, latest, or a position", param, ctx)
        return text


def position_of(client: Client, stream: str, text: str) -> int:
    """The position that a PositionText names in the stream as it is at this moment."""
    return int(text) if text.isdigit() else client.position(stream, at=text)
