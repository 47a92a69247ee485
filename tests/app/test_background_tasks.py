"""Tasks beside serving: one that fails is told of, and the others go on."""

import asyncio

from edgebox.app.background_tasks import BackgroundTasks
from tests.conftest import PATIENCE_S


async def test_a_task_that_fails_is_told_of_and_others_go_on() -> None:
    told: list[str] = []
    failed, going_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def tell(text: str) -> None:
        told.append(text)
        failed.set()

    async def fail() -> None:
        raise ZeroDivisionError("by nothing")

    async def go_on() -> None:
        going_on.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def end() -> None:
        """Have nothing to do."""

    tasks = BackgroundTasks(tell)
    tasks.start(go_on(), "watch")
    tasks.start(end(), "rest")
    tasks.start(fail(), "history")
    async with asyncio.timeout(PATIENCE_S):
        await failed.wait()
        await going_on.wait()
    assert not ended.is_set()
    await tasks.stop()
    await tasks.stop()
    assert ended.is_set()
    (text,) = told
    assert "does without its history" in text
    assert "ZeroDivisionError: by nothing" in text
