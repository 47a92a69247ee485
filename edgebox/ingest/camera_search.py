"""Looks for network cameras for a box: in a process of its own, one search at a time.

The ONVIF library blocks while it reads its descriptions, and changes its process's environment.
"""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.source_address import Credentials
from edgebox.inference.child_environment import environment_without_secrets
from edgebox.ingest.onvif_cameras import (
    GROUP,
    LISTEN_S,
    DiscoveryError,
    FoundCamera,
    check_installed,
)
from edgebox.runtime.child_process import ended

_WORKER_MODULE = "edgebox.ingest.camera_search_worker"
_SEARCH_S = 90.0


class SearchBusyError(EdgeboxError):
    """Cameras are being looked for already."""

    http_status = 503
    code = "search_busy"
    title = "Cameras are being looked for already"


class CameraSearch:
    """Searches of one box. Lives on the event loop."""

    def __init__(self) -> None:
        """Begin without a search."""
        self._searching = asyncio.Lock()

    async def search(
        self, credentials: Credentials | None = None, host: str | None = None
    ) -> list[FoundCamera]:
        """Return the cameras that answer, with their streams; the arguments are `search`'s.

        Raises:
            DiscoveryError: the extra is missing, or the network does not let it.
            SearchBusyError: another search runs.
        """
        check_installed()
        if self._searching.locked():
            raise SearchBusyError("cameras are being looked for; try again in a few seconds")
        async with self._searching:
            order = {
                "group": GROUP,
                "listen_s": LISTEN_S,
                "host": host,
                "username": None if credentials is None else credentials.username,
                "password": None if credentials is None else credentials.password,
            }
            answer = await _answered(json.dumps(order).encode())
        if "error" in answer:
            raise DiscoveryError(answer["error"])
        found: list[FoundCamera] = answer["cameras"]
        return found


async def _answered(order: bytes) -> dict[str, Any]:
    """Run the search's process and return its answer; raises DiscoveryError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _WORKER_MODULE),
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment_without_secrets(),
    )  # fmt: skip
    try:
        async with asyncio.timeout(_SEARCH_S):
            printed, _ = await process.communicate(order)
    except TimeoutError:
        raise DiscoveryError(f"looking for cameras took more than {_SEARCH_S:g} s") from None
    finally:
        await ended(process)
    try:
        # What libraries may have printed comes before.
        answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    except (ValueError, IndexError):
        raise DiscoveryError(
            f"looking for cameras failed (status {process.returncode}); "
            "`edgebox cameras discover` on the box says more"
        ) from None
    return answer
