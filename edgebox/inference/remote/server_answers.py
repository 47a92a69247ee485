"""What a server of the Open Inference Protocol answers, read; and what it refuses, as errors."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import orjson

from edgebox.domain.errors import ModelError
from edgebox.domain.requests import DropReason
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.remote.binary_tensors import (
    HEADER_LENGTH,
    InferResponse,
    ProtocolError,
    infer_response,
)
from edgebox.inference.remote.http_connection import Reply, ServerConnection
from edgebox.vision.detections import Detections

LOAD_REASONS = (
    DropReason.QUEUE.value,
    DropReason.INFEASIBLE.value,
    DropReason.OVERLOAD.value,
)
"""Why another edgebox drops a picture that it has no time for."""
_LOAD = ("too_busy", *LOAD_REASONS)
"""Codes of another edgebox's refusals that say how much it has to do."""
_AWAY = ("not_ready", DropReason.SHUTDOWN.value)
"""Codes of another edgebox's refusals that say that it is starting or stopping."""
_SAID_MAX = 300
_NO_ACCESS = (401, 403)

Found = tuple[list[Detections], Mapping[int, Refused]]


class OverloadedError(ModelError):
    """A server refuses a batch because it has too much to do, and not because anything is wrong."""

    def __init__(self, text: str, found: Found | None = None) -> None:
        super().__init__(text)
        self.found = found
        """What it answered before that, with the pictures that it refused; None: nothing."""


class AwayError(ModelError):
    """A server refuses a batch, none of which it answers, because it is starting or stopping."""


class RefusedError(ModelError):
    """A server refuses a batch: neither what it has to do nor the token is why."""


@contextlib.contextmanager
def answers_read(about: str) -> Iterator[None]:
    """Have whatever is wrong with the form of a server's answers be one error.

    Args:
        about: what they are about.

    Raises:
        ProtocolError: something is.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        why = plain(error)
        raise ProtocolError(f"{about}: the server's answer cannot be read: {why}") from error


def plain(said: object) -> str:
    """Return what a server says as text for people, who get no more than a line of it."""
    text = str(said)[:_SAID_MAX]
    return "".join(each if each.isprintable() else " " for each in text)


def infer(
    server: ServerConnection, model: str, request: tuple[bytes, list[bytes | memoryview]]
) -> InferResponse:
    """Ask a server to run a model; return its answer. Waits until the connection is shut.

    Who wants a batch has a time limit for it (`supervision`, `come_back`), and abandons the
    executor. One here would end a batch that hangs as one that failed.

    Args:
        server: the connection to it.
        model: its name for the model.
        request: the result of `infer_request`.

    Raises:
        OverloadedError: it has too much to do.
        AwayError: it is starting or stopping.
        RefusedError: it refuses for another reason.
        ModelError: it refuses the token, cannot be reached, or answers something else.
    """
    head, binary = request
    headers = {HEADER_LENGTH: str(len(head)), "Content-Type": "application/octet-stream"}
    path = f"{model_path(model)}/infer"
    reply = server.ask("POST", path, [head, *binary], headers, limit_s=None)
    if reply.status != 200:
        raise _error_of(reply)(f"{model}: {_refusal(reply)}")
    try:
        return infer_response(reply.body, reply.headers.get(HEADER_LENGTH))
    except ProtocolError as error:
        raise ProtocolError(f"{server.address.host}, {model}: {error}") from None


def model_path(model: str) -> str:
    """Return the path of a model on a server."""
    return f"/v2/models/{quote(model, safe='')}"


def document(reply: Reply, kind: type = dict) -> Any:
    """Return the JSON of an answer.

    Raises:
        ModelError: it is a refusal, or something else.
    """
    if reply.status != 200:
        raise ModelError(_refusal(reply))
    try:
        found = orjson.loads(reply.body)
    except ValueError:
        found = None
    if not isinstance(found, kind):
        raise ProtocolError("the server does not speak the Open Inference Protocol (/v2)")
    return found


def _refusal(reply: Reply) -> str:
    if reply.status in _NO_ACCESS:
        what = "the server refuses the token of this executor (token_file)"
    else:
        what = f"the server refuses it ({reply.status})"
    said = _said(reply, "error") or reply.body[:_SAID_MAX].decode(errors="replace")
    return f"{what}: {plain(said)}" if said else what


def _error_of(reply: Reply) -> type[ModelError]:
    if _is_overloaded(reply):
        return OverloadedError
    if reply.status == 503 and _said(reply, "code") in _AWAY:
        return AwayError
    return ModelError if reply.status in _NO_ACCESS else RefusedError


def _is_overloaded(reply: Reply) -> bool:
    """Return whether a refusal says that the server has too much to do for now.

    503 alone may as well say that the server is starting or has lost its device.
    """
    if reply.status == 503:
        return "Retry-After" in reply.headers or _said(reply, "code") in _LOAD
    return reply.status == 429


def _said(reply: Reply, name: str) -> str:
    """Return a text of a refusal's document; empty: there is none."""
    try:
        return str(orjson.loads(reply.body)[name])
    except (ValueError, LookupError, TypeError):
        return ""
