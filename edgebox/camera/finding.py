"""Finds the boxes that announce themselves in the local network by mDNS (extra mdns)."""

import asyncio
import importlib.util
from contextlib import suppress
from typing import TYPE_CHECKING

from edgebox.domain.errors import EdgeboxError
from edgebox.link.announcement import SERVICE_TYPE, FoundBox, found_box

if TYPE_CHECKING:
    from zeroconf import ServiceStateChange, Zeroconf
    from zeroconf.asyncio import AsyncZeroconf

_LISTEN_S = 2.5
"""Questions are asked at once and after a second; answers take a tenth of one."""
_REACH_S = 1.0
_BOXES_MAX, _ADDRESSES_MAX = 64, 8
_ASK_MS = 1_000


class FindingError(EdgeboxError):
    """Boxes cannot be looked for; the message says what to do."""

    code = "finding"


def can_find() -> bool:
    """Say whether what looks for boxes is installed."""
    return importlib.util.find_spec("zeroconf") is not None


async def find_boxes(listen_s: float = _LISTEN_S) -> list[FoundBox]:
    """Return the boxes that announce themselves and accept connections, by name.

    Anybody in the network can announce anything: what is found is no proof of what it is.

    Args:
        listen_s: how long to listen for answers.

    Raises:
        FindingError: the library is missing, or the network does not let it.
    """
    if not can_find():
        raise FindingError("looking for boxes needs the extra mdns: pip install 'edgebox[mdns]'")
    from zeroconf import InterfaceChoice, IPVersion  # noqa: PLC0415 - an extra
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncZeroconf  # noqa: PLC0415

    names: set[str] = set()

    def heard(
        zeroconf: "Zeroconf", service_type: str, name: str, state_change: "ServiceStateChange"
    ) -> None:
        (names.discard if state_change.name == "Removed" else names.add)(name)

    try:
        asker = AsyncZeroconf(interfaces=InterfaceChoice.All, ip_version=IPVersion.V4Only)
    except OSError as error:
        raise FindingError(f"boxes cannot be looked for in this network: {error}") from None
    try:
        browser = AsyncServiceBrowser(asker.zeroconf, SERVICE_TYPE, handlers=[heard])
        await asyncio.sleep(listen_s)
        await browser.async_cancel()
        # Anybody can announce anything: one bad record must not hide the others.
        known = [name for name in sorted(names) if name.endswith(f".{SERVICE_TYPE}")]
        found = await asyncio.gather(
            *(_found(asker, name) for name in known[:_BOXES_MAX]), return_exceptions=True
        )
    finally:
        await asker.async_close()
    return [box for box in found if isinstance(box, FoundBox)]


async def _found(asker: "AsyncZeroconf", name: str) -> FoundBox | None:
    """Return an announced box at the first address that accepts a connection; None: none does."""
    from zeroconf import IPVersion  # noqa: PLC0415 - an extra

    service = await asker.async_get_service_info(SERVICE_TYPE, name, _ASK_MS)
    if service is None or service.port is None:
        return None
    for address in service.parsed_addresses(IPVersion.V4Only)[:_ADDRESSES_MAX]:
        if await accepts(address, service.port):
            return found_box(name, address, service.port, service.properties)
    return None


async def accepts(address: str, port: int) -> bool:
    """Say whether something accepts connections there."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_REACH_S):
            _, writer = await asyncio.open_connection(address, port)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True
    return False
