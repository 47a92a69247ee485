"""A driver under test: the real Scheduler, an executor that the test answers, all endings kept."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.domain.requests import RequestId
from edgebox.inference.executor import Executor
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.family import InputSpec
from edgebox.inference.tensors import Canvas, ModelInput
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.driver import Driver
from edgebox.runtime.frames import FrameResult, PendingFrame
from edgebox.runtime.preparation import CanvasPool
from edgebox.runtime.supervisor import Opener
from edgebox.scheduling.actions import Advise
from edgebox.scheduling.events import CameraConnected, ExecutorStarted, VariantsAvailable
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from edgebox.vision.detections import Detections
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, MS, STREET, camera, profile, request

JPEG_LESS = b"never decoded"


@dataclass
class Batch:
    """One batch that the driver submitted."""

    variant: VariantName
    canvases: list[Canvas]
    batch_size: int
    future: "Future[BatchResult]"
    inputs: list[ModelInput] = field(default_factory=list)
    """With those that are no pictures."""
    deadline_ns: int | None = None

    def complete(self, took_ns: int = MS, pictures: int | None = None) -> None:
        """Come back with nothing found."""
        count = self.batch_size if pictures is None else pictures
        empty = [Detections.empty() for _ in range(count)]
        self.future.set_result(BatchResult(empty, 0, took_ns))


class ManualExecutor:
    """Keeps each batch until the test answers it."""

    id = CPU
    provider = "manual"
    device = "the test"
    note = ""
    cpu_threads = 1
    takes_encoded = False
    thread_counts: tuple[int, ...] = ()
    cores = ()
    families = ()

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.abandoned = False

    def submit(
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> "Future[BatchResult]":
        given = list(inputs)  # once, as a real executor: some are made when they are read
        pictures = [each for each in given if isinstance(each, np.ndarray)]
        batch = Batch(variant, pictures, batch_size, Future(), given, deadline_ns)
        self.batches.append(batch)
        return batch.future

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None:
        """There is nothing to warm."""

    def abandon(self) -> None:
        """Say that nobody waits for it any more."""
        self.abandoned = True

    def close(self) -> None:
        """There is nothing to close."""


class FakeClock:
    """A clock that moves when the test says so; it starts at 1 s."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MS

    def __call__(self) -> int:
        return self.now_ns


def keep_all(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
    """Plan that every camera keeps what it has."""
    kept = {c.camera.id: c.current for c in snapshot.cameras if c.current is not None}
    return Plan(snapshot.taken_ns, kept)


class Bench:
    """A started driver with one camera; make it inside a running loop."""

    def __init__(
        self,
        executor: Executor,
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        planner: Callable[[PlanningSnapshot, int], Plan] = keep_all,
        needs_pixels: bool = False,
        on_end: Callable[[PendingFrame, FrameResult], None] = lambda frame, ending: None,
        policy: str = "edf",
        parameters: SchedulerParameters | None = None,
        gain: float = 0.0,
        opener: Opener | None = None,
        on_give_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.endings: dict[RequestId, list[FrameResult]] = defaultdict(list)
        self.advice: list[Advise] = []
        self.plans: list[Plan] = []
        self.failures: list[InvariantViolation] = []
        self.not_opened: list[ExecutorId] = []
        self.notices: list[str] = []
        self.on_end = on_end
        self.clock_ns = clock_ns
        spec = InputSpec("nhwc", "uint8", "rgb", "top_left", 114, 32)
        self.canvases = CanvasPool({STREET: spec}, needs_pixels)
        self.driver = Driver(
            Scheduler(parameters or SchedulerParameters(), make_policy(policy)),
            executors=[executor],
            variants={variant.name: variant for variant in FAMILY},
            canvases=self.canvases,
            decode_threads=2,
            planner=planner,
            callbacks=Callbacks(
                on_advice=self.advice.append,
                on_plan=lambda plan, took_ns: self.plans.append(plan),
                on_failure=self.failures.append,
                on_give_up=on_give_up,
                on_not_opened=self.not_opened.append,
                on_decoding_hang=lambda: self.notices.append("no picture can be decoded"),
                notify=lambda level, text: self.notices.append(text),
            ),
            opener=opener,
            clock_ns=clock_ns,
        )
        self.driver.start()
        self.driver.feed(VariantsAvailable(FAMILY))
        self.driver.feed(ExecutorStarted(CPU, tuple(profile(px, gain=gain) for px in MEDIAN_MS)))
        self.driver.feed(CameraConnected(camera()))

    def submit(
        self,
        slo_ms: float = 300.0,
        jpeg: bytes | memoryview = JPEG_LESS,
        size: tuple[int, int] = (416, 234),
    ) -> PendingFrame:
        """Submit a frame of the camera that has just arrived."""
        now_ms = self.clock_ns() / MS
        made = request(self.driver.next_request_id(), now_ms + slo_ms, arrival_ms=now_ms, size=size)
        frame = PendingFrame(made, jpeg, 1280, 720, 0, self._ended)
        self.driver.submit(frame)
        return frame

    def _ended(self, frame: PendingFrame, ending: FrameResult) -> None:
        self.endings[frame.request.id].append(ending)
        self.on_end(frame, ending)

    def ending(self, frame: PendingFrame) -> FrameResult:
        """Return how a frame ended: once."""
        (ending,) = self.endings[frame.request.id]
        return ending


async def settle() -> None:
    """Let the loop run what threads and futures have reported."""
    for _ in range(5):
        await asyncio.sleep(0)
