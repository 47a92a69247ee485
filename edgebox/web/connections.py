"""Open connections: how many there may be, in all and of one address, and which give way.

A connection that waits for a request gives way to a new one, so that connections which send none
keep nobody out. Cameras' connections never do.
Some of the process's file descriptors are reserved for everything but connections.
"""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from edgebox.config.config_file import LimitParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.runtime.shared_amount import SharedAmount

_RESERVED_DESCRIPTORS = 64
"""For the database, files, imports, executors and destinations of events."""
_DESCRIPTORS_WANTED = 65_536
_OPEN_DESCRIPTORS = Path("/proc/self/fd")


class TooManyConnectionsError(EdgeboxError):
    """As many connections are open as may be."""

    http_status = 503
    code = "too_many_connections"
    title = "Too many connections are open"


class Connection(Protocol):
    """An open connection."""

    @property
    def peer(self) -> str | None:
        """The address of the other side; None: unknown."""
        ...

    def give_way(self) -> None:
        """Close; it is not counted any more."""
        ...


class Connections:
    """The open connections of one server."""

    def __init__(
        self,
        limits: LimitParameters,
        address_of: Callable[[str | None], str | None],
        on_refused: Callable[[str, EdgeboxError], None],
        descriptors: int | None = None,
    ) -> None:
        """Start without connections.

        Args:
            limits: the configuration.
            address_of: returns the address that a peer's limits count for; None: none does.
            on_refused: called with the address and reason of each refusal.
            descriptors: descriptors there are for connections; None: unlimited.
        """
        most = limits.cameras_max + limits.connections_max
        self.most = most if descriptors is None else max(1, min(most, descriptors))
        self.fewer = self.most < most
        """Whether the system allows fewer than the configuration."""
        of_one = limits.cameras_max + limits.connections_max // 2
        self._amount = SharedAmount(self.most, of_one)
        self._open: set[Connection] = set()
        self._idle: dict[Connection, None] = {}
        """Those that wait for a request, the longest first."""
        self._address_of = address_of
        self._on_refused = on_refused

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def opened(self, connection: Connection) -> EdgeboxError | None:
        """Count a new connection; return why it is refused, if it is."""
        address = self._address_of(connection.peer)
        if not self._amount.fits(address):
            self._make_room(address)
        if self._amount.fits(address):
            self._amount.take(address)
            self._open.add(connection)
            return None
        error = TooManyConnectionsError(
            f"{self._amount.used} connections are open, of {self.most} that there may be; an "
            f"address may have {self._amount.most_of_one} (limits.connections_max)"
        )
        self._on_refused(connection.peer or "?", error)
        return error

    def closed(self, connection: Connection) -> None:
        """Count a connection no more; harmless twice, or for one that was refused."""
        self.busy(connection)
        if connection in self._open:
            self._open.remove(connection)
            self._amount.give_back(self._address_of(connection.peer))

    def idle(self, connection: Connection) -> None:
        """Note that a connection waits for a complete request."""
        if connection in self._open:
            self._idle[connection] = None

    def busy(self, connection: Connection) -> None:
        """Note that a connection no longer waits."""
        self._idle.pop(connection, None)

    def _make_room(self, address: str | None) -> None:
        """Close the connection that waits longest, of this address if that has its share."""
        full = self._amount.used >= self.most
        for connection in self._idle:
            if full or self._address_of(connection.peer) == address:
                self.closed(connection)
                connection.give_way()
                return


def descriptors_for_connections() -> int:
    """Raise the limit of open files as far as the system lets us; return how many are left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < min(wanted, _DESCRIPTORS_WANTED):
        soft = min(wanted, _DESCRIPTORS_WANTED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        soft = _DESCRIPTORS_WANTED
    in_use = len(list(_OPEN_DESCRIPTORS.iterdir())) if _OPEN_DESCRIPTORS.is_dir() else 0
    return soft - in_use - _RESERVED_DESCRIPTORS
