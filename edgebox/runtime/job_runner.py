"""Runs long jobs that people start on a running box, one at a time, and reports their progress.

Lives on the event loop. Limits: the last jobs are kept in memory, for as long as the box runs.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from edgebox.domain.errors import EdgeboxError
from edgebox.storage.wall_clock import wall_clock_ms

_log = logging.getLogger(__name__)

JOBS_KEPT = 20

JobKind = Literal["profile", "import"]


class BusyError(EdgeboxError):
    """Another job is running; two at once would disturb each other."""

    http_status = 409
    code = "busy"
    title = "The box is busy with another job"


@dataclass(slots=True)
class Job:
    """A job and its progress."""

    id: int
    kind: JobKind
    family: str
    started_ms: int
    """Unix milliseconds, as all instants here."""
    state: Literal["running", "done", "failed"] = "running"
    text: str = "starting"
    """Present step; after the end, the result."""
    share: float = 0.0
    """Share that is done, 0 to 1."""
    ended_ms: int | None = None
    remarks: tuple[str, ...] = ()
    """Remarks about the result, one sentence each."""
    error: EdgeboxError | None = None
    """Why it failed."""

    def progress(self, text: str, share: float) -> None:
        """Report progress; may be called in any thread."""
        self.text, self.share = text, share


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a successful job."""

    text: str
    remarks: tuple[str, ...] = ()


Work = Callable[[Job], Awaitable[Finished]]


class Jobs:
    """The running job and earlier ones."""

    def __init__(self) -> None:
        """Start with none."""
        self._jobs: deque[Job] = deque(maxlen=JOBS_KEPT)
        self._ids = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._receiving: str | None = None
        """The family whose file is being received; None: none."""

    @property
    def all(self) -> list[Job]:
        """All jobs that are kept, the newest first."""
        return list(reversed(self._jobs))

    def check_free(self) -> None:
        """Raise an error if a job is running, or the file for one is received.

        Raises:
            BusyError: naming the job.
        """
        if self._receiving is not None:
            raise BusyError(f"the file of {self._receiving} is being received; wait until it is")
        running = next((job for job in self._jobs if job.state == "running"), None)
        if running is not None:
            what = "measured" if running.kind == "profile" else "imported"
            raise BusyError(
                f"{running.family} is being {what} (job {running.id}); wait until that job ends"
            )

    @contextlib.contextmanager
    def receiving(self, family: str) -> Iterator[None]:
        """Let no other job begin while the file of a family is received.

        Raises:
            BusyError: another job is running, or another file is received.
        """
        self.check_free()
        self._receiving = family
        try:
            yield
        finally:
            self._receiving = None

    def start(self, kind: JobKind, family: str, work: Work) -> Job:
        """Begin a job in the background.

        Args:
            kind: the kind of work.
            family: the family concerned.
            work: receives the job to report progress; fails with an EdgeboxError.

        Raises:
            BusyError: another one runs.
        """
        self.check_free()
        job = Job(next(self._ids), kind, family, wall_clock_ms())
        self._jobs.append(job)
        self._task = asyncio.create_task(self._run(job, work), name=f"job-{job.id}")
        return job

    async def _run(self, job: Job, work: Work) -> None:
        try:
            finished = await work(job)
        except EdgeboxError as error:
            job.state, job.error = "failed", error
        except Exception:  # a defect of edgebox: the job reports it, and the box goes on
            _log.exception("job %d (%s of %s) failed", job.id, job.kind, job.family)
            job.state, job.error = "failed", EdgeboxError("the box's log says why")
        else:
            job.state, job.share = "done", 1.0
            job.text, job.remarks = finished.text, finished.remarks
        finally:
            job.ended_ms = wall_clock_ms()

    async def stop(self) -> None:
        """Cancel the running job and wait until it has cleaned up."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
