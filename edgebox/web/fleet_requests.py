"""Asks another box of the fleet for something, and makes sure that it is one.

A request shows a ticket, not the secret, and an answer is signed with the secret. So a box that
does not know it can say nothing, whatever the certificate.
"""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp import hdrs

from edgebox.domain.errors import EdgeboxError
from edgebox.fleet.ticket import BOX_TICKET_S, answer_signature, box_ticket, same
from edgebox.link import connection_errors
from edgebox.link.box_address import authorization

SIGNATURE = "Edgebox-Signature"
_JSON = "application/json"
_TOLD_AFTER = 3


class FleetRequestError(EdgeboxError):
    """A box gave no answer; the message says why."""

    code = "fleet"


async def answer_of(
    client: aiohttp.ClientSession,
    url: str,
    *,
    secret: str,
    name: str,
    bytes_max: int,
    timeout_s: float,
    body: bytes | None = None,
) -> bytes:
    """Return what a box of the fleet answers.

    Args:
        client: makes the request.
        url: of the route.
        secret: the fleet's.
        name: of the box that asks.
        bytes_max: the largest answer that is read.
        timeout_s: for the whole answer.
        body: JSON to be sent; None: nothing is.

    Raises:
        FleetRequestError, aiohttp.ClientError, OSError, TimeoutError: there is no answer.
    """
    ticket = box_ticket(secret, name, time.time())
    headers = authorization(ticket) | ({} if body is None else {hdrs.CONTENT_TYPE: _JSON})
    # The answer proves who gives it, so certificates need not.
    async with client.request(
        "GET" if body is None else "POST",
        url,
        data=body,
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        ssl=False,
        allow_redirects=False,
    ) as response:
        answer = await _whole(response, bytes_max)
        if response.status == 401:
            raise FleetRequestError(_refused(response.headers.get(hdrs.DATE, ""), time.time()))
        if response.status != 200:
            raise FleetRequestError(
                f"it gives no answer (HTTP status {response.status}): it has no [fleet], or is "
                "of another version"
            )
        signature = response.headers.get(SIGNATURE, "")
    if not same(signature, answer_signature(secret, ticket, answer)):
        raise FleetRequestError("its answer is not signed with this fleet's secret")
    return answer


def explained(error: Exception) -> str:
    """Return why a box gives no answer, in plain words."""
    why = connection_errors.explained(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"it cannot be reached: {why}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it ended the connection unanswered; a box with TLS has an address with https://"
    return why


class Troubles:
    """Tells people once what goes wrong with each box; what happens once is no news."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """Begin without trouble; `warn` is called with a sentence for people."""
        self._warn = warn
        self._failed: dict[str, tuple[str, int]] = {}
        """What went wrong with each box, and how many times in a row."""

    def keep_only(self, addresses: set[str]) -> None:
        """Forget boxes that are at none of these addresses."""
        for gone in self._failed.keys() - addresses:
            del self._failed[gone]

    def over(self, address: str) -> None:
        """Note that all is well with a box."""
        self._failed.pop(address, None)

    def note(self, address: str, why: str, text: str, *, at_once: bool = False) -> None:
        """Note that something went wrong.

        Args:
            address: of the box.
            why: counted as the same trouble as long as it is the same.
            text: the sentence for people.
            at_once: whether they are told at the first time.
        """
        before, count = self._failed.get(address, ("", 0))
        count = count + 1 if why == before else 1
        self._failed[address] = why, count
        if count == (1 if at_once else _TOLD_AFTER):
            self._warn(text)


def _refused(date: str, now_s: float) -> str:
    """Return why a box refuses a ticket.

    Args:
        date: when it says that it answered, as HTTP has it; empty: it does not say.
        now_s: the wall clock here.
    """
    try:
        ahead_s = parsedate_to_datetime(date).timestamp() - now_s
    except (ValueError, OverflowError):
        ahead_s = 0.0
    if abs(ahead_s) < BOX_TICKET_S:
        return "it does not know this fleet's secret: all boxes need the same fleet.secret_file"
    how = "ahead of" if ahead_s > 0 else "behind"
    return (
        f"its clock is {abs(ahead_s) / 60:.0f} minutes {how} this box's: the clocks of a fleet "
        "must agree within ten minutes"
    )


async def _whole(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    body = bytearray()
    async for part in response.content.iter_chunked(65_536):
        body += part
        if len(body) > bytes_max:
            raise FleetRequestError("its answer is too long")
    return bytes(body)
