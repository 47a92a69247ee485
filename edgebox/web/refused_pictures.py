"""What follows from refusing a program's picture: it is counted, and repetitions cost less."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from aiohttp import web

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason, RequestId
from edgebox.runtime.frames import DROP_MESSAGES, ONE_SHOT_APP, one_shot_request
from edgebox.web.camera_pictures import NotServedError
from edgebox.web.listening import may_repeat, raw_answer, refused_picture
from edgebox.web.web_context import WebContext

OVERLOAD = NotServedError(DropReason.OVERLOAD, DROP_MESSAGES[DropReason.OVERLOAD])


@dataclass(frozen=True, slots=True)
class Repetition:
    """What a request's repetitions ask for: what has the same head and the same start of a body."""

    variant: VariantName
    deadline_ms: float
    """Counted from arrival."""
    said: Callable[[NotServedError], tuple[str, bytes]]
    """Returns content type and body of a refusal."""
    app: str = ONE_SHOT_APP
    start_bytes: int = 0
    """So many bytes of the body decide what it asks for."""


@contextlib.contextmanager
def refusals_noted(
    context: WebContext, request: web.Request, repetition: Repetition | None
) -> Iterator[None]:
    """Count the refusal of a request's picture; beyond the budget its connection rests.

    What repeats a refused request is refused by its head as long as there is no time for it; None:
    nothing repeats it.
    """
    try:
        yield
    except NotServedError as error:
        context.box.refusals.add_request(request.remote or "?", error)
        refused_picture(request)
        if repetition is not None:
            _refuse_repetitions(context, request, repetition)
        raise


@cache
def _answer(said: Callable[[NotServedError], tuple[str, bytes]]) -> bytes:
    """Return the whole answer of a refusal, which is the same every time."""
    return raw_answer(OVERLOAD, *said(OVERLOAD))


def _refuse_repetitions(context: WebContext, request: web.Request, repetition: Repetition) -> None:
    driver, peer = context.box.driver, request.remote or "?"

    def refusal() -> bytes | None:
        now_ns = driver.clock_ns()
        again = one_shot_request(
            RequestId(0),
            b"",
            (1, 1),
            repetition.variant,
            app=repetition.app,
            now_ns=now_ns,
            deadline_ms=repetition.deadline_ms,
        )
        if not driver.scheduler.admission.refuses_single(again, now_ns):
            return None
        context.box.refusals.add_request(peer, OVERLOAD)
        return _answer(repetition.said)

    bytes_max = context.config.limits.frame_bytes_max
    may_repeat(request, repetition.start_bytes, bytes_max, refusal)
