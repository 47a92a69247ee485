"""Short lives of a Scheduler that a journal has recorded."""

from collections.abc import Iterable
from pathlib import Path

from edgebox.domain.errors import EdgeboxError
from edgebox.runtime.entries import JournalEntry, read_entry
from edgebox.runtime.journal import Journal
from edgebox.runtime.recordings import write_file
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraConnected,
    CameraDisconnected,
    Event,
    ExecutorStarted,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    VariantsAvailable,
)
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from tests.scheduling.scene import CPU, FAMILY, LARGE, MS, camera, infers, profile, request


class Life:
    """A Scheduler under a hand-moved clock, recorded as the driver does it."""

    def __init__(
        self, journal: Journal | None = None, policy: str = "edf", gain: float = 0.0
    ) -> None:
        self.now_ns = 0
        self.journal = journal or Journal()
        parameters = SchedulerParameters(first_pixels_max=LARGE)
        self.scheduler = Scheduler(parameters, make_policy(policy))
        self._gain = gain
        self.journal.attach(self.scheduler, lambda: self.now_ns)
        self.entries: list[JournalEntry] = []
        self.running: list[Infer] = []

    def tell(self, event: Event | None, at_ms: float | None = None) -> None:
        if at_ms is not None:
            self.now_ns = round(at_ms * MS)
        actions = self.scheduler.handle(event, self.now_ns)
        self.journal.record(self.now_ns, event, actions)
        self.entries.append(JournalEntry(self.now_ns, event, tuple(actions)))
        self.running += infers(actions)
        if self.now_ns >= self.journal.due_ns:
            self.journal.checkpoint(self.now_ns)

    def open(self, *pixels: int) -> None:
        self.tell(VariantsAvailable(FAMILY))
        self.tell(
            ExecutorStarted(CPU, tuple(profile(px, gain=self._gain) for px in pixels or (128, 256)))
        )
        self.tell(CameraConnected(camera()))

    def frame(
        self,
        at: int,
        at_ms: float,
        deadline_ms: float,
        later: Iterable[tuple[float, float]] = (),
    ) -> None:
        arrived = request(at, deadline_ms, arrival_ms=at_ms, later=later)
        self.tell(RequestArrived(arrived), at_ms)
        self.tell(RequestPrepared(arrived.id, MS), at_ms + 1)

    def come_back(self, at_ms: float, took_ms: float) -> None:
        infer = self.running.pop(0)
        self.tell(BatchCompleted(infer.executor, infer.batch, round(took_ms * MS)), at_ms)


def eventful() -> Life:
    """Return a life with every ending a short one can have."""
    life = Life()
    life.open()
    life.frame(1, 10, 300)
    life.come_back(20, 8)
    life.frame(2, 30, 60)
    life.come_back(70, 39)
    life.tell(RequestArrived(request(3, 74, arrival_ms=73)), 73)
    life.tell(RequestArrived(request(4, 300, arrival_ms=80)), 80)
    life.tell(RequestRejected(request(4, 300).id), 82)
    life.frame(5, 100, 300)
    failed = life.running.pop(0)
    life.tell(BatchFailed(failed.executor, failed.batch), 110)
    life.frame(6, 120, 400)
    life.frame(7, 122, 400)
    life.tell(None, 125)
    life.come_back(130, 9)
    life.tell(CameraDisconnected(camera().id), 135)
    life.come_back(140, 9)
    life.tell(RequestArrived(request(8, 400, arrival_ms=150)), 150)
    return life


def entries_of(journal: Journal) -> list[JournalEntry]:
    """Return what a journal keeps."""
    lines = b"".join(journal.recording().blocks).splitlines()
    return [read_entry(line) for line in lines]


def filed(journal: Journal, folder: Path) -> Path:
    """Write a journal's file."""
    return write_file(journal.recording(), folder)


def refusal(work: object) -> str:
    """Call something that must be refused; return what is said."""
    try:
        work()  # type: ignore[operator]
    except EdgeboxError as error:
        return str(error)
    raise AssertionError("it was not refused")


def all_lines(journal: Journal) -> Iterable[bytes]:
    """Return the lines of a journal's file."""
    return b"".join(journal.recording().lines()).splitlines(keepends=True)
