"""Owns how a camera finds its box: which one it goes to now, what it shows there, and how.

The address it was given is the first. A box of a fleet tells it of others; there it shows the
ticket that it was given, and expects the certificate that it was told of.
"""

import asyncio
import random

import aiohttp

from edgebox.camera.pairing import why
from edgebox.camera.session import BoxRefusedError, ConnectionLostError
from edgebox.domain.errors import InvalidInputError
from edgebox.link.box_address import authorization, fingerprint_of, stream_url
from edgebox.link.failover import SILENCE_MAX_S, BoxAddresses, connect_timeout_s
from edgebox.link.fleet_messages import BoxPlace
from edgebox.link.messages import OtherBoxes, Redirect

PATIENT_CONNECT_TIMEOUT_S = 10.0
PATIENT_SILENCE_MAX_S = 10.0
"""Silence after which the connection counts as lost, where there is no other box; the socket is
pinged every second."""
REDIRECTS_AT_ONCE = 4
"""How many redirects are followed without a wait; boxes redirect a hello twice."""
_CLOSING = aiohttp.ClientWSTimeout(ws_close=1.0)
_MEANING = {
    421: "the box does not know the name in its address: add it to server.allowed_hosts on the box",
    429: "the box was asked too often from this address",
    503: "the box is starting, or has all the connections that it may have",
}
"""Of statuses of a box that is there; the camera tries again."""


class BoxConnection:
    """The boxes that a camera knows, and how to connect to the one that is its now."""

    def __init__(
        self, server: str, token: str | None, fingerprint: str | None, rng: random.Random
    ) -> None:
        """Begin with one box.

        Args:
            server: its address, as people write it.
            token: the camera's there; None: it needs none.
            fingerprint: of its certificate, in hexadecimal; None: any that the system trusts.
            rng: chooses among other boxes.

        Raises:
            InvalidInputError: one of them is malformed.
        """
        self._configured = stream_url(server)
        self._headers = authorization(token)
        self._addresses = BoxAddresses([self._configured], rng)
        self._fingerprints: dict[str, bytes] = {}
        self._ticket = ""
        self.rtt_ns = 0
        """The least round trip to the latest box."""
        self.answers = 0
        """How often any box answered at all, be it that it is starting."""
        self._hasty = False
        """Whether the next box is soon given up: it was served, and has not tried all since. Where
        links are slow, all may need longer."""
        if fingerprint is not None:
            self._fingerprints[self._configured] = fingerprint_of(fingerprint)

    @property
    def url(self) -> str:
        """The WebSocket of the box to connect to now."""
        return self._addresses.current

    @property
    def redirects(self) -> int:
        """How often it was redirected since its last welcome."""
        return self._addresses.redirects

    @property
    def silence_max_s(self) -> float:
        """Silence after which the box counts as lost."""
        return SILENCE_MAX_S if self._addresses.several else PATIENT_SILENCE_MAX_S

    async def open(self, client: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
        """Connect to the box.

        Raises:
            BoxRefusedError: it does not let this camera in.
            ConnectionLostError: there is no box, or not now.
        """
        expected = self._fingerprints.get(self.url)
        hasty = self._hasty and self._addresses.several
        timeout_s = connect_timeout_s(self.rtt_ns) if hasty else PATIENT_CONNECT_TIMEOUT_S
        try:
            async with asyncio.timeout(timeout_s):
                socket = await client.ws_connect(
                    self.url,
                    autoping=False,
                    timeout=_CLOSING,
                    headers=self._shown(),
                    ssl=True if expected is None else aiohttp.Fingerprint(expected),
                )
                self.answers += 1
                return socket
        except aiohttp.WSServerHandshakeError as error:
            self.answers += 1
            raise self._refused(error) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ConnectionLostError(f"cannot connect: {why(error)}") from None

    def welcomed(self) -> None:
        """Note that the box serves this camera."""
        self._hasty = True
        self._addresses.welcomed()

    def told(self, others: OtherBoxes) -> None:
        """Take in which other boxes there are."""
        self._ticket = others.ticket or self._ticket
        self._addresses.told([url for place in others.places if (url := self._known(place))])

    def redirected(self, redirect: Redirect) -> bool:
        """Go to the box that the present one names; return whether to wait first.

        To wait is for boxes that are not as they should be: they name no address, or go on naming
        others.
        """
        url = self._known(redirect.place)
        if url is None:
            return True
        self._ticket = redirect.ticket or self._ticket
        self._addresses.redirected(url)
        return self.redirects > REDIRECTS_AT_ONCE

    def lost(self) -> bool:
        """Go to another box, if there is one; return whether to wait first."""
        exhausted = self._addresses.lost()
        self._hasty = self._hasty and not exhausted
        return exhausted

    def _shown(self) -> dict[str, str]:
        """Return what the camera shows its box: its token where that is from, else a ticket."""
        if self.url == self._configured or not self._ticket:
            return self._headers
        return authorization(self._ticket)

    def _known(self, place: BoxPlace) -> str | None:
        """Note a box that another one named; return its WebSocket, None: it is no address."""
        try:
            url = stream_url(place.address)
            if place.fingerprint is not None and url != self._configured:
                self._fingerprints[url] = fingerprint_of(place.fingerprint)
        except InvalidInputError:
            return None
        return url

    def _refused(
        self, error: aiohttp.WSServerHandshakeError
    ) -> BoxRefusedError | ConnectionLostError:
        """Return what a box means that does not open a WebSocket."""
        elsewhere = self.url != self._configured
        if error.status == 401 and not elsewhere:
            return BoxRefusedError(
                "unauthorized",
                "the box needs a token for this camera, or does not know the one that it has: pair "
                "the camera (--pair CODE, with a code from the box's page, under Add a camera)",
            )
        if error.status == 403 and not elsewhere:
            return BoxRefusedError("forbidden", "the token does not allow to send pictures")
        meaning = _MEANING.get(error.status, "this is no edgebox, or not its address (--server)")
        if error.status in (401, 403):
            meaning = "this box of the fleet does not know the camera: do all have one secret?"
        return ConnectionLostError(f"cannot connect: {meaning} (HTTP status {error.status})")
