"""Which signals end a program in order."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from edgebox.camera.shutdown import on_end_signals
from tests.conftest import PATIENCE_S


@pytest.fixture(params=[signal.SIG_DFL, signal.SIG_IGN])
def hangup(request: pytest.FixtureRequest) -> Iterator[signal.Handlers]:
    before = signal.signal(signal.SIGHUP, request.param)
    yield request.param
    signal.signal(signal.SIGHUP, before)


async def test_a_terminal_that_is_closed_ends_it_but_not_with_nohup(
    hangup: signal.Handlers,
) -> None:
    ends: list[str] = []
    ended = asyncio.Event()

    def end() -> None:
        ends.append("end")
        ended.set()

    on_end_signals(end)
    os.kill(os.getpid(), signal.SIGHUP)
    if hangup is signal.SIG_IGN:
        os.kill(os.getpid(), signal.SIGTERM)  # whatever came before it has been told by now
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()
    assert ends == ["end"]
    loop = asyncio.get_running_loop()
    removed = [loop.remove_signal_handler(each) for each in (signal.SIGHUP, signal.SIGTERM)]
    assert removed == [hangup is signal.SIG_DFL, True]
    loop.remove_signal_handler(signal.SIGINT)
