"""What follows from refusing a program's picture: it is counted, and repetitions cost less."""

import contextlib
from collections.abc import Callable, Iterator
from functools import cache

from aiohttp import web

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason, RequestId
from edgebox.runtime.frames import DROP_MESSAGES, one_shot_request
from edgebox.web.camera_pictures import NotServedError
from edgebox.web.hosts import client_of
from edgebox.web.listening import may_repeat, raw_answer, refused_picture
from edgebox.web.web_context import WebContext


def overload() -> NotServedError:
    """Return a new refusal for want of time.

    Each is its own: one that is raised again and again would keep what every raise was about.
    """
    return NotServedError(DropReason.OVERLOAD, DROP_MESSAGES[DropReason.OVERLOAD])


@contextlib.contextmanager
def refusals_noted(context: WebContext, request: web.Request) -> Iterator[None]:
    """Count the refusal of a request's picture; beyond the budget its connection rests."""
    try:
        yield
    except NotServedError as error:
        context.box.refusals.add_request(client_of(request).address, error)
        refused_picture(request)
        raise


@cache
def _answer(said: Callable[[NotServedError], tuple[str, bytes]]) -> bytes:
    """Return the whole answer of a refusal, which is the same every time."""
    error = overload()
    return raw_answer(error, *said(error))


def refuse_repetitions(
    context: WebContext,
    request: web.Request,
    variant: VariantName,
    deadline_ms: float,
    *,
    app: str,
    said: Callable[[NotServedError], tuple[str, bytes]],
    start_bytes: int = 0,
) -> None:
    """Refuse what repeats a request by its head, as long as there is no time for its picture.

    Args:
        context: of the server.
        request: its picture is about to be submitted.
        variant: that it runs on.
        deadline_ms: counted from arrival.
        app: the application that it belongs to.
        said: returns content type and body of a refusal.
        start_bytes: so many bytes of the body decide what it asks for.
    """
    driver, address = context.box.driver, client_of(request).address

    def refusal() -> bytes | None:
        if not driver.scheduler.queue_length:
            return None  # there is time, or the deadline is too short for any
        now_ns = driver.clock_ns()
        again = one_shot_request(
            RequestId(0), b"", (1, 1), variant, app=app, now_ns=now_ns, deadline_ms=deadline_ms
        )
        if not driver.scheduler.admission.refuses_single(again, now_ns):
            return None
        context.box.refusals.add_request(address, overload())
        return _answer(said)

    may_repeat(request, start_bytes, context.config.limits.frame_bytes_max, refusal)
