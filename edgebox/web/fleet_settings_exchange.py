"""Fetches from the other boxes of a fleet the settings of cameras that are newer there.

A report has a digest of all settings. Where it differs, a box asks for the versions in the parts
that differ, and then for the settings that it lacks. Asking changes nothing at the box that is
asked, so what is fetched can come twice or late, and whoever repeats an old answer achieves
nothing. Off the path of frames, and off that of reports.
"""

import asyncio
import functools
import time
from collections.abc import Callable

import aiohttp

from edgebox.fleet.settings_documents import (
    ANSWER_BYTES_MAX,
    VALUE_BYTES_MAX,
    VERSIONS_BYTES_MAX,
    WANTED_MAX,
    comparison,
    read_settings,
    read_versions,
    wish,
)
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_requests import FleetRequestError, Troubles, answer_of, explained

VERSIONS_PATH = "/v1/fleet/settings/versions"
SETTINGS_PATH = "/v1/fleet/settings"
_TIMEOUT_S = 10.0
"""For each answer, which may be a megabyte over a slow link; how many there are is not limited."""
_PAUSE_S = 3.0
"""How long a box is not asked again after it gave no sound answer."""


class SettingsExchange:
    """Keeps what this box knows of the fleet's settings up to date."""

    def __init__(self, member: FleetMember, warn: Callable[[str], None]) -> None:
        """Fetch nothing yet.

        Args:
            member: this box.
            warn: called with a sentence for people.
        """
        self._member = member
        self._settings = member.settings
        self._troubles = Troubles(warn)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._compared: dict[str, tuple[str, str]] = {}
        """This box's digest and another's when nothing was newer there."""
        self._not_before_s: dict[str, float] = {}

    def reported(self, client: aiohttp.ClientSession, address: str, theirs: str) -> None:
        """Fetch what is newer at another box, if its digest says that something may be.

        Args:
            client: for requests.
            address: where the box was asked.
            theirs: its digest; empty: it does not share settings.
        """
        mine = self._settings.replicated.digest()
        if (
            not theirs
            or theirs == mine
            or address in self._running
            or self._compared.get(address) == (mine, theirs)
            or time.monotonic() < self._not_before_s.get(address, 0.0)
        ):
            return
        task = asyncio.create_task(self._fetch(client, address, theirs), name="fleet settings")
        self._running[address] = task
        task.add_done_callback(lambda _: self._running.pop(address, None))

    def keep_only(self, addresses: set[str]) -> None:
        """Forget boxes that are at none of these addresses."""
        self._troubles.keep_only(addresses)
        for known in (self._compared, self._not_before_s):
            for gone in known.keys() - addresses:
                del known[gone]

    async def stop(self) -> None:
        """Fetch no more."""
        tasks = [*self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, client: aiohttp.ClientSession, address: str, theirs: str) -> None:
        text = f"settings of cameras at {address} are not taken: "
        try:
            problems = await self._catch_up(client, address)
        except Exception as error:  # it is asked again, whatever it was
            self._not_before_s[address] = time.monotonic() + _PAUSE_S
            why = explained(error)
            self._troubles.note(address, why, text + why)
            return
        self._compared[address] = self._settings.replicated.digest(), theirs
        if not problems:
            self._troubles.over(address)
            return
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        self._troubles.note(address, problems[0], text + problems[0] + more, at_once=True)

    async def _catch_up(self, client: aiohttp.ClientSession, address: str) -> list[str]:
        """Fetch all that is newer there; return what is wrong with some of it.

        Raises:
            EdgeboxError, aiohttp.ClientError, OSError, TimeoutError: an answer is missing or wrong.
        """
        replicated = self._settings.replicated
        ask = functools.partial(
            answer_of,
            client,
            secret=self._member.secret,
            name=self._member.name,
            timeout_s=_TIMEOUT_S,
        )
        url = address.rstrip("/")
        problems: list[str] = []
        first: int | None = 0
        while first is not None:
            body = await ask(
                url + VERSIONS_PATH,
                bytes_max=VERSIONS_BYTES_MAX,
                body=comparison(replicated.digests(), first),
            )
            found = read_versions(body)
            if found.next is not None and found.next <= first:
                raise FleetRequestError("its answer about settings goes round in circles")
            first, newer = found.next, replicated.to_fetch(found.versions, wall_clock_ms())
            while newer:
                asked, newer = newer[:WANTED_MAX], newer[WANTED_MAX:]
                body = await ask(
                    url + SETTINGS_PATH,
                    bytes_max=ANSWER_BYTES_MAX + VALUE_BYTES_MAX,
                    body=wish(asked),
                )
                # Zones take long to check.
                settings, refused = await asyncio.to_thread(read_settings, body, asked)
                answered = settings.keys() | refused.keys()
                if not answered:
                    break  # they are gone meanwhile
                problems += refused.values()
                if left_out := await self._settings.take(settings):
                    problems.append(f"there is no room for {left_out} of them")
                newer = [key for key in asked if key not in answered] + newer
        return problems
