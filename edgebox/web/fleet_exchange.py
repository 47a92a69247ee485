"""Asks the other boxes of a fleet for their reports, once a second each.

Who is asked can show the ticket of the request to other boxes for ten minutes and read what they
tell each other: names of cameras, settings and loads, which who listens between boxes without TLS
reads as well. Off the path of frames: nothing waits for it.
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
from edgebox.fleet.box_report import REPORT_AGE_MAX_NS, REPORT_PERIOD_NS, BoxReport
from edgebox.fleet.report_document import REPORT_BYTES_MAX, decoded
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_requests import Troubles, answer_of, explained
from edgebox.web.fleet_settings_exchange import SettingsExchange

_log = logging.getLogger(__name__)
PATH = "/v1/fleet/report"
BOXES_ASKED_MAX = 128
_TIMEOUT_S = 1.0
_LOOK_PERIOD_S = 10.0
"""How often names are resolved, and announcements listened for."""


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
        self._troubles = Troubles(warn)
        self._settings = SettingsExchange(member, warn)
        self._addresses: list[str] = []
        self._answered_ns: dict[str, int] = {}
        """When each address last gave a report."""
        self._own: set[str] = set()
        """Addresses at which this box itself answered."""

    async def run(self) -> None:
        """Ask until cancelled."""
        async with aiohttp.ClientSession() as client:
            looking = asyncio.create_task(self._look(), name="fleet addresses")
            try:
                while True:
                    began_s = time.monotonic()
                    await asyncio.gather(*(self._ask(client, each) for each in self._asked()))
                    took_s = time.monotonic() - began_s
                    await asyncio.sleep(max(0.1, REPORT_PERIOD_NS / 1e9 - took_s))
            finally:
                looking.cancel()
                await asyncio.gather(looking, self._settings.stop(), return_exceptions=True)

    def _asked(self) -> list[str]:
        return [each for each in self._addresses if each not in self._own][:BOXES_ASKED_MAX]

    async def _look(self) -> None:
        while True:
            try:
                await self._look_once()
            except Exception:  # the known ones are asked, and it is tried again
                _log.exception("the addresses of the fleet's boxes were not looked up")
            await asyncio.sleep(_LOOK_PERIOD_S)

    async def _look_once(self) -> None:
        found = [each for address in self._parameters.boxes for each in await boxes_behind(address)]
        self._addresses = list(dict.fromkeys([*found, *self._addresses]))
        if self._parameters.discover:
            found += await self._announced()
        self._addresses = list(dict.fromkeys(found))
        self._forget_all_but({*found, ""})

    def _forget_all_but(self, addresses: set[str]) -> None:
        """Forget how addresses answered that no longer are a box's."""
        self._own &= addresses
        self._troubles.keep_only(addresses)
        self._settings.keep_only(addresses)
        for known in (self._answered_ns, self._member.left_out, self._member.asked_at):
            for gone in known.keys() - addresses:
                del known[gone]

    async def _announced(self) -> list[str]:
        try:
            return [box.url for box in await find_boxes()]
        except FindingError as error:
            self._troubles.note("", str(error), str(error), at_once=True)
            return []

    async def _ask(self, client: aiohttp.ClientSession, address: str) -> None:
        try:
            report = await self._report(client, address)
        except Exception as error:  # it is asked again in a second, whatever it was
            why = explained(error)
            age_ns = time.monotonic_ns() - self._answered_ns.get(address, -REPORT_AGE_MAX_NS)
            if age_ns > REPORT_AGE_MAX_NS:
                self._member.left_out[address] = why
            self._trouble(address, why)
            return
        now_ns = self._answered_ns[address] = time.monotonic_ns()
        self._member.left_out.pop(address, None)
        self._troubles.over(address)
        if report.box == self._member.name:
            self._own.add(address)
        else:
            self._member.asked_at[address] = report.box
            self._member.known.reported(report, now_ns)
            self._settings.reported(client, address, report.settings)

    async def _report(self, client: aiohttp.ClientSession, address: str) -> BoxReport:
        """Return the report of a box.

        Raises:
            EdgeboxError, aiohttp.ClientError, OSError, TimeoutError: there is none.
        """
        return decoded(
            await answer_of(
                client,
                address.rstrip("/") + PATH,
                secret=self._member.secret,
                name=self._member.name,
                bytes_max=REPORT_BYTES_MAX,
                timeout_s=_TIMEOUT_S,
            )
        )

    def _trouble(self, address: str, why: str) -> None:
        """Tell people once why a box gives no reports."""
        text = f"the fleet's box at {address} is left out: {why}"
        self._troubles.note(address, why, text)


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
