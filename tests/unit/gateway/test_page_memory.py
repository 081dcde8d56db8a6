"""Pages shrink as those that wait for their readers fill the room, and never below a least size."""

from __future__ import annotations

from contextlib import ExitStack

from penstock.gateway.page_memory import PAGE_BYTES_MIN, PageMemory

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
