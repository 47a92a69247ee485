"""Announces the box in the local network by mDNS while it runs, if it is configured to."""

import asyncio
import importlib.util
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from edgebox.config.config_file import ServerParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.link.announcement import SERVICE_TYPE, host_label, instance_name, properties
from edgebox.web.addresses import reachable_at

if TYPE_CHECKING:
    from zeroconf.asyncio import AsyncZeroconf

_log = logging.getLogger(__name__)
_LOOPBACK = "127.0.0.1"
_LOOK_PERIOD_S = 30.0
"""How often the machine's addresses are looked at: networks come and go."""


class AnnouncementError(EdgeboxError):
    """The box cannot be announced; the message says what to do."""

    code = "announcement"


class Announcement:
    """The announcement of one box."""

    def __init__(self, server: ServerParameters, warn: Callable[[str], None]) -> None:
        """Announce nothing yet.

        Args:
            server: the configuration.
            warn: called with a sentence for people when it cannot be announced.

        Raises:
            AnnouncementError: it is configured, and the library is missing.
        """
        self._server = server
        self._warn = warn
        self._task: asyncio.Task[None] | None = None
        if server.announce and importlib.util.find_spec("zeroconf") is None:
            raise AnnouncementError(
                "server.announce needs the extra mdns: pip install 'edgebox[mdns]'; or leave it out"
            )

    def start(self, port: int) -> None:
        """Begin to announce the port on which the box listens, if that is configured."""
        if self._server.announce:
            self._task = asyncio.create_task(self._keep(port), name="announcement")

    async def stop(self) -> None:
        """Take it back; others forget it at once."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep(self, port: int) -> None:
        """Announce the addresses that the machine has, also when they change."""
        announced: list[str] = []
        responder: AsyncZeroconf | None = None
        failed = ""
        try:
            while True:
                try:
                    addresses = await asyncio.to_thread(_addresses, self._server.host)
                    if addresses != announced:
                        if responder is not None:
                            await responder.async_close()
                            responder = None
                        if addresses:
                            responder = await _announced(self._server, addresses, port)
                        announced, failed = addresses, ""
                except Exception as error:  # tried again at the next look, whatever it was
                    announced = []
                    why = str(error) or type(error).__name__
                    if why != failed:
                        failed = why
                        self._warn(f"the box cannot be announced in the network: {why}")
                await asyncio.sleep(_LOOK_PERIOD_S)
        finally:
            if responder is not None:
                await responder.async_unregister_all_services()
                await responder.async_close()


def _addresses(host: str) -> list[str]:
    """Return the IPv4 addresses on which a box is announced: where it listens. Blocks."""
    found = reachable_at(host) or [_LOOPBACK]
    try:
        return [socket.gethostbyname(each) for each in found]
    except OSError:
        return []


async def _announced(server: ServerParameters, addresses: list[str], port: int) -> "AsyncZeroconf":
    """Return what answers questions for a box from now on.

    Raises:
        OSError: the network does not let it.
    """
    from zeroconf import Error, IPVersion  # noqa: PLC0415 - an extra
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf  # noqa: PLC0415

    host = socket.gethostname().partition(".")[0]
    service = AsyncServiceInfo(
        SERVICE_TYPE,
        f"{instance_name(server.name, host)}.{SERVICE_TYPE}",
        addresses=[socket.inet_aton(each) for each in addresses],
        port=port,
        properties=properties(server.tls != "off"),
        server=host_label(host, port),
    )
    responder = AsyncZeroconf(interfaces=addresses, ip_version=IPVersion.V4Only)
    try:
        await (await responder.async_register_service(service, allow_name_change=True))
    except BaseException as error:
        await responder.async_close()
        if isinstance(error, Error):
            raise OSError(str(error) or type(error).__name__) from error
        raise
    _log.info("announced as %s on %s", service.name, ", ".join(addresses))
    return responder
