"""The context of all routes: the running box and its other parts."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from edgebox.config.config_file import Config
from edgebox.domain.errors import EdgeboxError
from edgebox.inference.family import Family
from edgebox.runtime.box import Box
from edgebox.runtime.job_runner import Job, Jobs
from edgebox.runtime.journal import Journal
from edgebox.runtime.machine_measurements import MachineMeasurements
from edgebox.storage.database import Storage
from edgebox.web.feed import Feed
from edgebox.web.request_limits import RequestLimits
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
        """Say goodbye and end it."""
        ...


class CamerasConnectedError(EdgeboxError):
    """Measuring would take the executor from connected cameras."""

    http_status = 409
    code = "cameras_connected"
    title = "Cameras are served"


class MemoryLimitedError(EdgeboxError):
    """A family with limited memory cannot be measured while the box serves."""

    http_status = 409
    code = "memory_limited"
    title = "Models share a limited memory"


class FamilyExistsError(EdgeboxError):
    """A family of this name exists."""

    http_status = 409
    code = "family_exists"
    title = "There is a model family of this name"


class NoImportsError(EdgeboxError):
    """The packages for importing are not installed."""

    http_status = 501
    code = "no_imports"
    title = "This box cannot import models"


class ImportRefusedError(EdgeboxError):
    """A model file could not be imported; the message says why."""

    http_status = 422
    code = "import_refused"
    title = "The file was not imported"


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
    connections: set[Connection] = field(default_factory=set)
    """Open WebSockets and event streams; each route adds and removes its own."""
    requests: RequestLimits = field(init=False)
    """Limits of all requests."""

    def __post_init__(self) -> None:
        """Begin without requests."""
        self.requests = RequestLimits(self.config.limits, self.config.server, self.box.refusals)
