"""Makes programs that ask again at once wait, so that their refusals take no time from cameras.

A picture for which there is no time is refused as soon as that is certain. Then its connection
rests: the next picture on it is read a little later, and twice as late with each refusal in a row.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from aiohttp import web

from edgebox.web.camera_pictures import NotServedError
from edgebox.web.problems import Answerer

REST_MIN_S = 0.02
REST_MAX_S = 1.0
REFUSED = "edgebox.refused"
"""Set in a request whose picture was refused, by who turns errors into answers before this."""


class Rests:
    """How long connections rest. Pure."""

    def __init__(self) -> None:
        self._until_s: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """By connection: until when it rests, and how long that is; the last refused at the end."""

    def refused(self, connection: Hashable, now_s: float) -> None:
        """Let a connection rest: twice as long as before, if it was refused not long ago."""
        until_s, before_s = self._until_s.pop(connection, (0.0, 0.0))
        if until_s <= now_s - REST_MAX_S:
            before_s = 0.0
        rest_s = min(REST_MAX_S, max(REST_MIN_S, 2 * before_s))
        self._until_s[connection] = now_s + rest_s, rest_s
        while self._until_s:
            oldest, (until_s, _) = next(iter(self._until_s.items()))
            if until_s > now_s - REST_MAX_S:
                break
            del self._until_s[oldest]

    def answered(self, connection: Hashable) -> None:
        """Forget the refusals of a connection."""
        self._until_s.pop(connection, None)

    def left_s(self, connection: Hashable, now_s: float) -> float:
        """Return how long a connection still rests."""
        until_s, _ = self._until_s.get(connection, (now_s, 0.0))
        return max(0.0, until_s - now_s)

    def __len__(self) -> int:
        """Return how many connections are known."""
        return len(self._until_s)


def refusals_paced() -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that lets connections rest after refusals for want of time."""
    rests = Rests()

    @web.middleware
    async def paced(request: web.Request, handler: Answerer) -> web.StreamResponse:
        if request.method != "POST":  # only these ask for pictures
            return await handler(request)
        clock_s = asyncio.get_running_loop().time
        transport = request.transport
        connection = None if transport is None else transport.get_extra_info("peername")
        if (left_s := rests.left_s(connection, clock_s())) > 0:
            await asyncio.sleep(left_s)
        try:
            response = await handler(request)
        except NotServedError:
            rests.refused(connection, clock_s())
            raise
        if request.get(REFUSED):
            rests.refused(connection, clock_s())
        else:
            rests.answered(connection)
        return response

    return paced
