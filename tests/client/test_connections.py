"""The client's connections: what it tries again, what it refuses, and what it gives back."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from aiohttp import web
from edgebox_client import Client, InvalidInputError, SubscriptionRefusedError, subscribe
from edgebox_client.blocking import _Loop

from edgebox.client import BoxAccess, TokenNeededError, get_document, watched_camera
from tests.conftest import PATIENCE_S


@asynccontextmanager
async def answering(*answers: web.Response) -> AsyncIterator[str]:
    """Serve these answers to whatever is asked, the last one for ever; yield the address."""
    left = list(answers)

    async def answer(request: web.Request) -> web.Response:
        of = left.pop(0) if len(left) > 1 else left[0]
        return web.Response(status=of.status, body=of.body, content_type=of.content_type)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("status", [408, 429, 503])
async def test_a_box_that_refuses_for_now_is_asked_again(status: int) -> None:
    refusal = web.Response(status=status, text='{"detail": "too many wrong tokens"}')
    message = web.Response(text='data: {"type": "subscribed"}\n\n')
    remarks: list[str] = []
    async with answering(refusal, message) as url:
        messages = subscribe(url, on_remark=remarks.append)
        async with aclosing(messages):
            assert await anext(messages) == {"type": "subscribed"}
    assert remarks[0] == "too many wrong tokens; trying again until it works"


async def test_a_wrong_token_ends_it() -> None:
    async with answering(web.Response(status=401, text='{"detail": "no token"}')) as url:
        with pytest.raises(SubscriptionRefusedError, match="no token"):
            await anext(subscribe(url))


@pytest.mark.parametrize("text", ["<html>", "[]"])
async def test_a_document_that_is_none_is_an_error_in_words(text: str) -> None:
    async with answering(web.Response(text=text)) as url:
        with pytest.raises(SubscriptionRefusedError, match="this is no edgebox"):
            await get_document(url, "fleet")


@pytest.mark.parametrize(
    ("status", "text", "kind", "why"),
    [
        (401, '{"detail": "no token"}', TokenNeededError, "no token"),
        (403, '{"detail": "needs viewer"}', SubscriptionRefusedError, "needs viewer"),
        (200, '{"x": 1}', SubscriptionRefusedError, "this is no edgebox"),
    ],
)
async def test_who_may_not_watch_a_camera_is_told_why(
    status: int, text: str, kind: type[Exception], why: str
) -> None:
    async with answering(web.Response(status=status, text=text)) as url:
        with pytest.raises(kind, match=why):
            async with watched_camera(BoxAccess(url.removeprefix("http://")), "gate", 1.0):
                pass


async def test_who_would_watch_one_page_too_many_is_told_so() -> None:
    state = web.Response(text='{"cameras": [{"id": "gate", "connected": true}]}')
    refusal = web.Response(status=503, text='{"detail": "32 pages are open"}')
    async with answering(state, refusal) as url:
        with pytest.raises(SubscriptionRefusedError, match="too many are watching") as told:
            async with watched_camera(BoxAccess(url), "gate", 1.0):
                pass
    assert "limits.viewers_max" in str(told.value)
    assert "reached" not in str(told.value)
    async with answering(state, web.Response(status=404)) as url:
        with pytest.raises(SubscriptionRefusedError, match=r"its pictures, with status 404$"):
            async with watched_camera(BoxAccess(url), "gate", 1.0):
                pass


def test_a_callback_that_calls_the_client_is_told_so_and_does_not_hang() -> None:
    client = Client("http://127.0.0.1:1")
    told: list[str] = []

    async def callback() -> None:
        for call in (lambda: client.infer(b"\xff\xd8"), client.close):
            try:
                call()
            except InvalidInputError as error:
                told.append(str(error))

    calling = threading.Thread(target=client._loop.run, args=(callback(),), daemon=True)
    calling.start()
    calling.join(PATIENCE_S)
    assert len(told) == 2
    assert all(text.startswith("callbacks must not call the client") for text in told)
    client.close()


def test_a_client_that_is_closed_gives_its_loop_back() -> None:
    async def nothing() -> None:
        """Do nothing."""

    loop = _Loop()
    loop.run(nothing())
    thread, event_loop = loop._thread, loop._loop
    assert thread is not None
    assert event_loop is not None
    loop.close(nothing)
    thread.join(PATIENCE_S)
    assert event_loop.is_closed()


def test_several_threads_may_close_one_client() -> None:
    began, may_end = threading.Event(), threading.Event()

    async def nothing() -> None:
        """Do nothing."""

    async def last() -> None:
        began.set()
        await asyncio.to_thread(may_end.wait, PATIENCE_S)

    loop = _Loop()
    loop.run(nothing())
    closing = [threading.Thread(target=loop.close, args=(last,), daemon=True) for _ in range(2)]
    closing[0].start()
    assert began.wait(PATIENCE_S)
    closing[1].start()
    may_end.set()
    for thread in closing:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in closing)
