"""Recognises a request by its head as the repetition of one before it on its connection. Pure.

Programs send one picture after another with the same head: the same path, headers and parameters,
at most another length. Under overload most are refused, and what that costs decides how much time
is left for answers. A repetition was checked when it came first, so it can be refused without being
parsed, routed and read; its body is skipped as it arrives.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

HEADERS_END = b"\r\n\r\n"
VALID_S = 2.0
"""How long a head is known: then a request is checked again as a whole."""
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})\r\n", re.IGNORECASE)
_NOT_REPEATED = re.compile(
    rb"^[^\r]*(?<! HTTP/1\.1)\r"
    rb"|\r\n(?:transfer-encoding|content-encoding|expect|upgrade)[ \t]*:"
    rb"|\r\nconnection[ \t]*:(?![ \t]*keep-alive\r)",
    re.IGNORECASE,
)
"""Of an older version, or with headers that say more of its body or its connection."""

Refusal = Callable[[], bytes | None]
"""Returns the answer to a request that would be refused now, with its head; None: it would not."""


@dataclass(frozen=True, slots=True)
class RepeatedRequest:
    """The head of a request, up to its picture, without its length."""

    before: bytes
    after: bytes
    """Headers after the length, and the start of the body that does not differ."""
    headers_bytes: int
    """Length of what is before the body, without the digits of its length."""
    body_bytes_max: int
    until_s: float
    refusal: Refusal

    def length(self, received: bytes) -> int | None:
        """Return the length of a repetition with its body; None: this is none, or not surely."""
        if not received.startswith(self.before):
            return None
        at = len(self.before)
        end = received.find(b"\r", at, at + 16)
        digits = received[at:end]
        if end < 0 or not digits.isdigit() or not received.startswith(self.after, end):
            return None
        body_bytes = int(digits)
        if body_bytes > self.body_bytes_max:
            return None
        return self.headers_bytes + end - at + body_bytes


def repeated_request(
    received: bytes, start_bytes: int, body_bytes_max: int, now_s: float, refusal: Refusal
) -> RepeatedRequest | None:
    """Return what repeats a request; None: nothing does.

    Args:
        received: the first bytes of the connection that belong to it.
        start_bytes: as many bytes of its body decide what it asks for.
        body_bytes_max: longer ones are checked as a whole.
        now_s: when.
        refusal: what it would be refused with now.
    """
    headers_end = received.find(HEADERS_END) + len(HEADERS_END)
    headers = received[:headers_end]
    length = _LENGTH.search(headers)
    end = headers_end + start_bytes
    if length is None or len(received) < end or _NOT_REPEATED.search(headers):
        return None
    return RepeatedRequest(
        received[: length.start(1)],
        received[length.end(1) : end],
        headers_end - len(length[1]),
        body_bytes_max,
        now_s + VALID_S,
        refusal,
    )
