"""Waiting for what the core decides."""

import asyncio

from edgebox.runtime.conditions import Conditions
from tests.runtime.driving import settle


async def test_a_condition_that_holds_is_not_waited_for() -> None:
    await Conditions().until(lambda: True)


async def test_who_waits_goes_on_only_while_the_condition_holds() -> None:
    conditions, held = Conditions(), set[str]()
    waiting = asyncio.ensure_future(conditions.until(lambda: "one" in held))
    other = asyncio.ensure_future(conditions.until(lambda: "other" in held))
    await settle()
    conditions.look()
    await settle()
    held.add("one")
    conditions.look()
    conditions.look()
    held.clear()  # before the loop comes to who waits
    await settle()
    assert not waiting.done()
    held.add("one")
    conditions.look()
    await settle()
    assert waiting.done()
    assert not other.done()
    other.cancel()
    await settle()
    assert not conditions._awaited
