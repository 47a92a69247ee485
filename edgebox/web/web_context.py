"""Owns what all routes answer from: the running box and the parts beside it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from edgebox.config.config_file import Config
from edgebox.domain.errors import EdgeboxError
from edgebox.inference.family import Family
from edgebox.runtime.box import Box
from edgebox.runtime.job_runner import Job, Jobs
from edgebox.runtime.journal import Journal
from edgebox.runtime.looplag import LoopLag
from edgebox.storage.database import Storage
from edgebox.web.feed import Feed
from edgebox.web.state_document import StateCache


@dataclass(frozen=True, slots=True)
class Upload:
    """A model file on its way in, and what its sender knows of it."""

    name: str
    """What the family is to be called."""
    chunks: AsyncIterator[bytes]
    layout: str | None = None
    licence: str | None = None


class Connection(Protocol):
    """A connection that outlives its request, to be closed when the box stops."""

    async def close(self) -> None:
        """Say goodbye and end it."""
        ...


class CamerasConnectedError(EdgeboxError):
    """Measuring would take the executor from cameras that are served."""

    http_status = 409
    code = "cameras_connected"
    title = "Cameras are served"


class MemoryLimitedError(EdgeboxError):
    """Not all of a family is in memory, so it cannot be measured beside serving."""

    http_status = 409
    code = "memory_limited"
    title = "Models share a limited memory"


class FamilyExistsError(EdgeboxError):
    """There is a family of the name that a new one was to have."""

    http_status = 409
    code = "family_exists"
    title = "There is a model family of this name"


class NoImportsError(EdgeboxError):
    """What importing needs is not installed."""

    http_status = 501
    code = "no_imports"
    title = "This box cannot import models"


class ImportRefusedError(EdgeboxError):
    """A model file did not become a family; the message says why."""

    http_status = 422
    code = "import_refused"
    title = "The file was not taken"


class ModelJobs(Protocol):
    """Does what takes long, as jobs: measures families, brings new ones in."""

    jobs: Jobs

    def measure(self, family: Family) -> Job:
        """Begin to measure a family on every executor.

        Raises:
            BusyError: another job runs.
            CamerasConnectedError: it would take the executor from cameras.
        """
        ...

    async def import_model(self, upload: Upload) -> Job:
        """Receive a model file, then begin to import it.

        Raises:
            EdgeboxError: it was not received, or there is no importing it; nothing is left.
        """
        ...


@dataclass(slots=True)
class WebContext:
    """What the routes of one server answer from."""

    box: Box
    config: Config
    storage: Storage
    lag: LoopLag
    journal: Journal
    states: StateCache
    feed: Feed
    model_jobs: ModelJobs
    connections: set[Connection] = field(default_factory=set)
    """Open WebSockets and streams of events; a route adds its own, and takes it away at its end."""
