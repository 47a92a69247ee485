"""A receiver of webhooks on loopback that can be slow, absent-minded and strict."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

SECRET = "a shared word"
HANG = 0
"""Instead of a status: never answer."""


@dataclass
class Receiver:
    """What came in, and what is answered."""

    url: str = ""
    taken: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    """The id of every attempt, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: Callable[[dict[str, Any]], int | web.Response] = lambda event: 204
    secret: str | None = SECRET
    open_now: int = 0

    async def hook(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if self.secret is not None and not genuine(request.headers, body, self.secret):
            return web.Response(status=401)
        event = json.loads(body)
        self.attempts.append(event["id"])
        self.headers.append(dict(request.headers))
        answer = self.answer(event)
        if answer == HANG:
            self.open_now += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.open_now -= 1
        if isinstance(answer, web.Response):
            return answer
        if 200 <= answer < 300:
            self.taken.append(event)
        return web.Response(status=answer)

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.taken]


def _of_the_docs() -> Callable[[Mapping[str, str], bytes, str], bool]:
    """Return the check of a signature that docs/reference/events.md gives to receivers."""
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "events.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    found: Callable[[Mapping[str, str], bytes, str], bool] = names["genuine"]
    return found


genuine = _of_the_docs()


@contextlib.asynccontextmanager
async def receiving(port: int = 0) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/hook", receiver.hook)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()
