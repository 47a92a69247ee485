"""Asks the other boxes of a fleet for their reports, once a second each.

A request shows a ticket, not the secret, and an answer is signed with the secret. So a box that
does not know it can say nothing, whatever the certificate. But who is asked can show the ticket to
other boxes for ten minutes and read their reports: names of cameras and loads, which who listens
between boxes without TLS reads as well. Off the path of frames: nothing waits for it.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import aiohttp

from edgebox.camera.finding import FindingError, find_boxes
from edgebox.config.fleet_section import FleetParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.fleet.box_report import REPORT_AGE_MAX_NS, REPORT_PERIOD_NS, BoxReport
from edgebox.fleet.report_document import REPORT_BYTES_MAX, decoded
from edgebox.fleet.ticket import answer_signature, box_ticket, same
from edgebox.link.box_address import authorization
from edgebox.link.connection_errors import explained
from edgebox.web.fleet_member import FleetMember

_log = logging.getLogger(__name__)
PATH = "/v1/fleet/report"
SIGNATURE = "Edgebox-Signature"
BOXES_ASKED_MAX = 128
_TIMEOUT_S = 1.0
_TOLD_AFTER = 3
"""How many times in a row a box gives no report until people are told."""
_LOOK_PERIOD_S = 10.0
"""How often names are resolved, and announcements listened for."""


class _RefusedError(EdgeboxError):
    """A box gave no report; the message says why."""

    code = "fleet"


class FleetExchange:
    """Keeps what this box knows of the others up to date."""

    def __init__(
        self, parameters: FleetParameters, member: FleetMember, warn: Callable[[str], None]
    ) -> None:
        """Ask nobody yet.

        Args:
            parameters: the configuration.
            member: this box.
            warn: called with a sentence for people.
        """
        self._parameters = parameters
        self._member = member
        self._warn = warn
        self._addresses: list[str] = []
        self._failed: dict[str, tuple[str, int]] = {}
        """Why each box gave no report, and how many times in a row for this reason."""
        self._answered_ns: dict[str, int] = {}
        """When each address last gave a report."""
        self._own: set[str] = set()
        """Addresses at which this box itself answered."""

    async def run(self) -> None:
        """Ask until cancelled."""
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        looking = asyncio.create_task(self._look(), name="fleet addresses")
        try:
            async with aiohttp.ClientSession(timeout=timeout) as client:
                while True:
                    began_s = time.monotonic()
                    await asyncio.gather(*(self._ask(client, each) for each in self._asked()))
                    took_s = time.monotonic() - began_s
                    await asyncio.sleep(max(0.1, REPORT_PERIOD_NS / 1e9 - took_s))
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    def _asked(self) -> list[str]:
        return [each for each in self._addresses if each not in self._own][:BOXES_ASKED_MAX]

    async def _look(self) -> None:
        while True:
            found = [
                each for address in self._parameters.boxes for each in await boxes_behind(address)
            ]
            self._addresses = list(dict.fromkeys([*found, *self._addresses]))
            if self._parameters.discover:
                found += await self._announced()
            self._addresses = list(dict.fromkeys(found))
            self._forget_all_but(found)
            await asyncio.sleep(_LOOK_PERIOD_S)

    def _forget_all_but(self, addresses: Iterable[str]) -> None:
        """Forget how addresses answered that no longer are a box's."""
        for known in (self._failed, self._answered_ns, self._member.left_out):
            for gone in known.keys() - {*addresses, ""}:
                del known[gone]

    async def _announced(self) -> list[str]:
        try:
            return [box.url for box in await find_boxes()]
        except FindingError as error:
            for _ in range(_TOLD_AFTER):
                self._trouble("", str(error))
            return []

    async def _ask(self, client: aiohttp.ClientSession, address: str) -> None:
        try:
            report = await self._report(client, address)
        except Exception as error:  # it is asked again in a second, whatever it was
            why = explained(error)
            if isinstance(error, aiohttp.ClientConnectorError):
                why = f"it cannot be reached: {why}"
            age_ns = time.monotonic_ns() - self._answered_ns.get(address, -REPORT_AGE_MAX_NS)
            if age_ns > REPORT_AGE_MAX_NS:
                self._member.left_out[address] = why
            self._trouble(address, why)
            return
        now_ns = self._answered_ns[address] = time.monotonic_ns()
        self._member.left_out.pop(address, None)
        self._trouble(address, "")
        if report.box == self._member.name:
            self._own.add(address)
        else:
            self._member.known.reported(report, now_ns)

    async def _report(self, client: aiohttp.ClientSession, address: str) -> BoxReport:
        """Return the report of a box.

        Raises:
            EdgeboxError, aiohttp.ClientError, OSError, TimeoutError: there is none.
        """
        secret = self._member.secret
        ticket = box_ticket(secret, self._member.name, time.time())
        # The answer proves who gives it, so certificates need not.
        async with client.get(
            address.rstrip("/") + PATH,
            headers=authorization(ticket),
            ssl=False,
            allow_redirects=False,
        ) as response:
            body = await _whole(response)
            if response.status == 401:
                raise _RefusedError(
                    "it does not know this fleet's secret, or the clocks of the two differ by more "
                    "than ten minutes: all boxes need the same fleet.secret_file"
                )
            if response.status != 200:
                raise _RefusedError(
                    f"it gives no report (HTTP status {response.status}): it has no [fleet], or is "
                    "of another version"
                )
            signature = response.headers.get(SIGNATURE, "")
        if not same(signature, answer_signature(secret, ticket, body)):
            raise _RefusedError("its report is not signed with this fleet's secret")
        return decoded(body)

    def _trouble(self, address: str, why: str) -> None:
        """Tell people once why a box gives no reports; one that is late once is no news."""
        if not why:
            self._failed.pop(address, None)
            return
        before, count = self._failed.get(address, ("", 0))
        count = count + 1 if why == before else 1
        self._failed[address] = why, count
        if count == _TOLD_AFTER:
            self._warn(f"the fleet's box at {address} is left out: {why}" if address else why)


async def boxes_behind(address: str) -> Iterable[str]:
    """Return the addresses that a configured one stands for: of a name, each that it has."""
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port
    with suppress(ValueError):
        ip_address(host)
        return [address]
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, family=socket.AF_INET, type=socket.SOCK_STREAM
            )
    except (OSError, TimeoutError, UnicodeError):
        return [address]  # asking it says what is wrong
    return one_for_each(address, {str(each[4][0]) for each in found})


def one_for_each(address: str, hosts: set[str]) -> list[str]:
    """Return the addresses of the boxes behind a name.

    Args:
        address: with the name, which stays where it has one address only, for its certificate.
        hosts: the IPv4 addresses that the name has, at least one.
    """
    if len(hosts) == 1:
        return [address]
    parts = urlsplit(address)
    return [f"{parts.scheme}://{each}:{parts.port}" for each in sorted(hosts)]


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for part in response.content.iter_chunked(65_536):
        body += part
        if len(body) > REPORT_BYTES_MAX:
            raise _RefusedError("its report is too long")
    return body
