"""Light requests that come at once are spread over turns of the loop, in their order."""

from __future__ import annotations

import asyncio

from penstock.gateway.turns import Turns


def test_a_few_in_each_turn_and_others_in_between() -> None:
    async def story() -> list[str]:
        turns, order = Turns(2), list[str]()

        async def light(number: int) -> None:
            await turns.take()
            order.append(str(number))

        async def other() -> None:
            for _ in range(4):
                order.append("other")
                await asyncio.sleep(0)

        await asyncio.gather(*(light(number) for number in range(7)), other())
        return order

    order = asyncio.run(story())
    assert [each for each in order if each != "other"] == [str(number) for number in range(7)]
    pauses = "".join("-" if each == "other" else "x" for each in order).strip("-").split("-")
    assert max(len(run) for run in pauses) <= 3


def test_who_gives_up_waiting_takes_no_place() -> None:
    async def story() -> None:
        turns = Turns(1)
        await turns.take()
        waiting = [asyncio.ensure_future(turns.take()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait_for(asyncio.gather(*waiting[1:]), 60)

    asyncio.run(story())
