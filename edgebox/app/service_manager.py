"""Tells systemd how a box is: ready, alive, what it does, stopping (`sd_notify`).

A few datagrams to a socket that the service manager names in the environment; without one, nothing
is sent. See sd_notify(3).
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping

_PERIOD_S = 10.0
"""Between two messages where no watchdog waits for them."""
_START_TIMEOUT_S = 60
"""A start that goes on may take this much longer than the last message."""


class ServiceManager:
    """The service manager that started this process, if one did."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Find its socket, and how often its watchdog wants to be fed."""
        address = environment.get("NOTIFY_SOCKET", "")
        # An abstract socket's name begins with a null byte.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.period_s = _PERIOD_S
        """Time between two messages: a third of the watchdog's patience."""
        fed_by = environment.get("WATCHDOG_PID", str(os.getpid()))
        with contextlib.suppress(ValueError):
            patience_s = int(environment.get("WATCHDOG_USEC", "0")) / 1e6
            if patience_s > 0 and fed_by == str(os.getpid()):
                self.period_s = min(_PERIOD_S, patience_s / 3)

    def notify(self, **fields: str) -> None:
        """Send fields of sd_notify(3); never blocks, and an error is nobody's business."""
        if not self._address:
            return
        message = "\n".join(f"{name}={value}" for name, value in fields.items())
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as sender:
            sender.sendto(message.encode(), self._address)

    async def run(self, describe: Callable[[], tuple[bool, str]]) -> None:
        """Feed the watchdog as long as the event loop turns, and say what the box does.

        Args:
            describe: returns whether the box is ready, and its state in a few words.
        """
        if not self._address:
            return
        said_ready = False
        while True:
            ready, status = describe()
            fields = {"STATUS": status, "WATCHDOG": "1"}
            if ready and not said_ready:
                fields["READY"] = "1"
                said_ready = True
            elif not said_ready:
                fields["EXTEND_TIMEOUT_USEC"] = str(_START_TIMEOUT_S * 1_000_000)
            self.notify(**fields)
            await asyncio.sleep(self.period_s if said_ready else 1.0)
