"""The context of all routes: the running box and its other parts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from edgebox.config.config_file import Config
from edgebox.domain.access import Identity
from edgebox.inference.family import Family
from edgebox.ingest.camera_search import CameraSearch
from edgebox.ingest.pulled_cameras import PulledCameras
from edgebox.runtime.access_control import AccessControl
from edgebox.runtime.box import Box
from edgebox.runtime.job_runner import Job, Jobs
from edgebox.runtime.journal import Journal
from edgebox.runtime.machine_measurements import MachineMeasurements
from edgebox.storage.database import Storage
from edgebox.web.feed import Feed
from edgebox.web.fleet_member import FleetMember
from edgebox.web.request_limits import RequestLimits
from edgebox.web.setting_versions import Setters
from edgebox.web.state_document import StateCache


@dataclass(frozen=True, slots=True)
class Upload:
    """A model file that is being uploaded, and its sender's options."""

    name: str
    """Name of the new family."""
    chunks: AsyncIterator[bytes]
    layout: str | None = None
    licence: str | None = None


class Connection(Protocol):
    """A long-lived connection, which is closed when the box stops."""

    async def close(self) -> None:
        """Say goodbye and end it: the box is stopping."""
        ...

    async def revoked(self) -> None:
        """End it: who has it may not use the box any more."""
        ...


class ModelJobs(Protocol):
    """Runs long jobs: measures and imports families."""

    jobs: Jobs

    def measure(self, family: Family) -> Job:
        """Begin to measure a family on every executor.

        Raises:
            BusyError: another job is running.
            CamerasConnectedError: it would take the executor from cameras.
        """
        ...

    async def import_model(self, upload: Upload) -> Job:
        """Receive a model file, then begin to import it.

        Raises:
            EdgeboxError: the upload failed, or the file cannot be imported; nothing is stored.
        """
        ...

    async def remove(self, name: str) -> None:
        """Serve a family no more, and delete it.

        Raises:
            BusyError: a job runs.
            FamilyInUseError: it is in use; the message says by what.
            ModelError: it was not imported, or cannot be deleted.
        """
        ...

    async def set_default(self, name: str) -> None:
        """Make a family that of cameras that name none.

        Raises:
            FamilyInUseError: the configuration file names another one.
            ModelError: it is not given pictures, or this cannot be stored.
        """
        ...


@dataclass(slots=True)
class WebContext:
    """The state that the routes of one server use."""

    box: Box
    config: Config
    storage: Storage
    machine: MachineMeasurements
    journal: Journal
    states: StateCache
    feed: Feed
    model_jobs: ModelJobs
    access: AccessControl
    sources: PulledCameras
    fleet: FleetMember | None = None
    """This box as one of a fleet; None: it is alone."""
    search: CameraSearch = field(default_factory=CameraSearch)
    setters: Setters = field(default_factory=Setters)
    _connections: dict[Connection, Callable[[], Identity]] = field(default_factory=dict)
    """Open WebSockets and event streams, and what returns whose they are now."""
    _closing: set[asyncio.Task[None]] = field(default_factory=set)
    picture_work: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    """So that pictures of programs do not take all threads."""
    requests: RequestLimits = field(init=False)
    """Limits of all requests."""

    def __post_init__(self) -> None:
        """Begin without requests."""
        self.requests = RequestLimits(self.config.limits, self.config.server, self.box.refusals)

    @contextlib.contextmanager
    def connected(self, connection: Connection, identity: Callable[[], Identity]) -> Iterator[None]:
        """Keep a connection meanwhile, so that it is closed when the box or its right ends.

        `identity` returns whose it is: that of a camera is known from its hello on.
        """
        self._connections[connection] = identity
        try:
            yield
        finally:
            del self._connections[connection]

    async def close_all(self) -> None:
        """Say goodbye to everybody who is connected."""
        await asyncio.gather(*(connection.close() for connection in [*self._connections]))

    def close_revoked(self) -> None:
        """Close the connections of those whose tokens or sessions have ended."""
        for connection, identity in self._connections.items():
            if not self.access.is_valid(identity()):
                task = asyncio.ensure_future(connection.revoked())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
