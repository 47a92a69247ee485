"""Limits what all requests together, and those of one address, may hold of the box.

How many are answered at once, how many bytes of their bodies are held, how many pages are open.
WebSockets have limits of their own, and health checks are always answered.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator
from contextvars import ContextVar

from aiohttp import StreamReader, web

from edgebox.config.config_file import LimitParameters, ServerParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.runtime.refusals import Refusals
from edgebox.runtime.shared_amount import SharedAmount
from edgebox.web.hosts import Client, client_of, trusted_proxies

BODY_PICTURES = 4
"""Largest body, in multiples of the largest JPEG: raw pixels are large."""
BYTES_PER_S_MIN = 16_000
"""Slowest mean rate of a body or an answer after `limits.body_timeout_s`."""
_HOLDING: ContextVar["BodyHolding"] = ContextVar("holding")

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TooBusyError(EdgeboxError):
    """The box answers as many requests, or holds as many bytes of them, as it may."""

    http_status = 503
    code = "too_busy"
    title = "The box has too many requests at once"


class TooManyViewersError(EdgeboxError):
    """As many pages are open as may be."""

    http_status = 503
    code = "too_many_viewers"
    title = "Too many pages are open"


class SlowBodyError(EdgeboxError):
    """A request's body did not arrive in time."""

    http_status = 408
    code = "slow_body"
    title = "The body did not arrive in time"


class BodyHolding:
    """The bytes of one request's body that the box holds, until the request is answered."""

    def __init__(
        self,
        bodies: SharedAmount,
        address: str | None,
        timeout_s: float,
        on_refused: Callable[[EdgeboxError], None],
    ) -> None:
        """Hold nothing yet."""
        self._bodies = bodies
        self._on_refused = on_refused
        self._address = address
        self._timeout_s = timeout_s
        self._held = 0

    def add(self, more_bytes: int) -> None:
        """Hold more.

        Raises:
            TooBusyError: that would be too much.
        """
        if not self._bodies.fits(self._address, more_bytes):
            raise self._refused(
                "the box holds as many bytes of requests' bodies as it may "
                "(limits.bodies_max_mb). Try again"
            )
        self._bodies.take(self._address, more_bytes)
        self._held += more_bytes

    def hold(self, held_bytes: int) -> None:
        """Hold so many from now on.

        Raises:
            TooBusyError: that would be too much.
        """
        if held_bytes >= self._held:
            self.add(held_bytes - self._held)
        else:
            self._bodies.give_back(self._address, self._held - held_bytes)
            self._held = held_bytes

    def _refused(self, why: str) -> TooBusyError:
        error = TooBusyError(why)
        self._on_refused(error)
        return error

    def release(self) -> None:
        """Hold nothing any more."""
        self.hold(0)

    def allowed_s(self, arrived_bytes: int) -> float:
        """Return within what time so much of a body must have arrived."""
        return self._timeout_s + arrived_bytes / BYTES_PER_S_MIN

    def too_slow(self) -> SlowBodyError:
        """Return the error of a body that did not arrive in time."""
        return SlowBodyError(
            f"the body did not arrive within {self._timeout_s:g} s and a second more for every "
            f"{BYTES_PER_S_MIN / 1e3:g} kB (limits.body_timeout_s)"
        )

    async def parts(self, request: web.Request) -> AsyncIterator[bytes]:
        """Yield a body in pieces as it arrives.

        Raises:
            SlowBodyError: it arrives too slowly.
        """
        clock_s = asyncio.get_running_loop().time
        began_s, arrived_bytes = clock_s(), 0
        content = request.content
        while not content.at_eof():
            if not (part := content.read_nowait()):
                until_s = began_s + self.allowed_s(arrived_bytes)
                part = await self._next_part(content, until_s - clock_s())
            arrived_bytes += len(part)
            yield part

    async def _next_part(self, content: StreamReader, within_s: float) -> bytes:
        try:
            async with asyncio.timeout(within_s):
                return await content.readany()
        except TimeoutError:
            raise self.too_slow() from None


def present_holding() -> BodyHolding:
    """Return the holding of the request that the present task answers."""
    return _HOLDING.get()


class RequestLimits:
    """What all requests to one box hold."""

    def __init__(
        self, limits: LimitParameters, server: ServerParameters, refusals: Refusals
    ) -> None:
        """Start without requests; `refusals` counts and tells of those that are refused."""
        self._timeout_s = limits.body_timeout_s
        self._refusals = refusals
        self._trusts = trusted_proxies(server)
        self._requests = _halved(limits.requests_max)
        largest = BODY_PICTURES * limits.frame_bytes_max
        self._bodies = _halved(max(limits.bodies_max_mb * 1_000_000, 2 * largest))
        self._viewers = _halved(limits.viewers_max)

    def address_of(self, peer: str | None) -> str | None:
        """Return the address that a peer's limits count for; None: a trusted proxy's."""
        return None if self._trusts(peer) else peer or "?"

    def holding(
        self, address: str | None, on_refused: Callable[[EdgeboxError], None]
    ) -> BodyHolding:
        """Return what a client's present request holds of the bytes for bodies; nothing yet.

        Args:
            address: that its limits count for; None: none.
            on_refused: called with the error of what would be too much.
        """
        return BodyHolding(self._bodies, address, self._timeout_s, on_refused)

    def middleware(self, uncounted: Container[str]) -> Callable[..., Awaitable[web.StreamResponse]]:
        """Return the middleware that refuses requests beyond the limits.

        Args:
            uncounted: paths whose requests are always let in.
        """

        @web.middleware
        async def limited(request: web.Request, handler: Answerer) -> web.StreamResponse:
            client = client_of(request)
            address = client.limited
            refused = functools.partial(self._refusals.add_request, client.address)
            holding = self.holding(address, refused)
            _HOLDING.set(holding)
            counted = request.path not in uncounted
            if counted and not self._requests.fits(address):
                error = TooBusyError(
                    "the box answers as many requests as it may (limits.requests_max). Try again"
                )
                refused(error)
                raise error
            self._requests.take(address, counted)
            try:
                return await handler(request)
            finally:
                self._requests.give_back(address, counted)
                holding.release()

        return limited

    @contextlib.contextmanager
    def viewer(self, client: Client) -> Iterator[None]:
        """Count a client's open page.

        Raises:
            TooManyViewersError: there are too many.
        """
        address = client.limited
        if not self._viewers.fits(address):
            error = TooManyViewersError(
                f"{self._viewers.used} pages are open, of which an address may have "
                f"{self._viewers.most_of_one} (limits.viewers_max)"
            )
            self._refusals.add_request(client.address, error)
            raise error
        self._viewers.take(address)
        try:
            yield
        finally:
            self._viewers.give_back(address)


def _halved(most: int) -> SharedAmount:
    return SharedAmount(most, max(1, most // 2))
