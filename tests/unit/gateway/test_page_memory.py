"""Pages shrink as those that wait for their readers fill the room, and never below a least size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast

import pytest

from penstock.gateway import json_pages
from penstock.gateway.page_memory import PAGE_BYTES_MIN, PageMemory
from penstock.settings.server import Settings

MIB = 1 << 20


def test_two_hundred_slow_readers_hold_little_more_than_the_room_there_is() -> None:
    memory = PageMemory(256 * MIB)
    with ExitStack() as readers:
        sizes = []
        for _ in range(200):
            sizes.append(memory.page_bytes(64 * MIB))
            readers.enter_context(memory.held(sizes[-1]))
        assert sizes[0] == 64 * MIB
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] == PAGE_BYTES_MIN
        assert memory.held_bytes <= 256 * MIB + 200 * PAGE_BYTES_MIN
    assert memory.held_bytes == 0
    assert memory.page_bytes(8 * MIB) == 8 * MIB


def test_a_page_holds_what_it_has_once_that_is_known() -> None:
    memory = PageMemory(256 * MIB)
    with memory.held(8 * MIB) as room:
        room.resize(100)
        assert memory.held_bytes == 100
    assert memory.held_bytes == 0


def test_a_small_page_stays_as_it_was_asked_for() -> None:
    assert PageMemory(1).page_bytes(1_000) == 1_000


def test_what_is_asked_about_a_query_is_in_the_room_for_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Room is held while it is looked up, of the size it may have, and then of the one it has until
    it is taken."""
    memory = PageMemory(64 * MIB)
    held: list[int] = []

    class Server:
        page_memory = memory
        settings = Settings(page_bytes=4 * MIB)

        async def look_up_json(self, question: Callable[..., bytes], *args: object) -> bytes:
            held.append(memory.held_bytes)
            return question(*args)

    async def taken(_: object, body: bytes, content_type: str) -> str:
        held.append(memory.held_bytes)
        return f"{len(body)} {content_type}"

    monkeypatch.setattr(json_pages, "gateway_of", lambda _: Server())
    monkeypatch.setattr(json_pages, "sent", taken)
    page = json_pages.json_page(cast("Any", None), lambda _, size: b"x" * (size // 4), "q")
    assert asyncio.run(cast("Any", page)) == f"{MIB} application/json"
    assert held == [4 * MIB, MIB]
    assert memory.held_bytes == 0
