"""What a camera sends beyond its advice waits outside the core while the box has other work."""

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import DropReason
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frame_gate import BEYOND_ADVICE, FrameGate
from edgebox.runtime.frames import PendingFrame, Refusal
from tests.end_to_end.running import until
from tests.runtime.driving import JPEG_LESS, Bench, FakeClock, ManualExecutor
from tests.scheduling.scene import MS, camera, request

RATE_HZ = 10.0


class Gated:
    """A gate before a driver whose executor never answers, and one camera at 10 frames/s."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.bench = Bench(ManualExecutor(), clock_ns=self.clock)
        self.gate = FrameGate(lambda: self.bench.driver)
        self.record = CameraRecord(camera(), "test", None, None)
        advice = Advice(VariantName("street-128"), 128, 72, RATE_HZ, 85, 0, "")
        self.record.advised(advice, self.clock())
        self.core: list[PendingFrame] = []
        self._submit = self.bench.driver.submit
        self.bench.driver.submit = self._taken  # type: ignore[method-assign]

    def _taken(self, frame: PendingFrame) -> None:
        self.core.append(frame)
        self._submit(frame)

    def arrive(self) -> PendingFrame:
        """Let a frame arrive now."""
        bench, now_ms = self.bench, self.clock() / MS
        number = bench.driver.next_request_id()
        made = request(number, now_ms + 5_000, arrival_ms=now_ms)
        frame = PendingFrame(made, JPEG_LESS, 1280, 720, 0, bench._ended)
        self.gate.submit(self.record, frame, None)
        return frame

    def use_up(self) -> PendingFrame:
        """Let frames arrive until one is held back; return it."""
        for _ in range(100):
            frame = self.arrive()
            if self.gate.held:
                return frame
        raise AssertionError("no frame was held back")


async def test_of_the_frames_beyond_the_advice_the_newest_goes_on_with_the_next_token() -> None:
    gated = Gated()
    older = gated.use_up()
    taken = len(gated.core)
    newest = [gated.arrive() for _ in range(5)][-1]
    assert len(gated.core) == taken
    assert gated.bench.ending(older) == Refusal(DropReason.OVERLOAD, BEYOND_ADVICE)
    gated.clock.now_ns += 200 * MS
    await until(lambda: not gated.gate.held, "the next token")
    assert gated.core[taken:] == [newest]
    assert not gated.bench.endings[newest.request.id]


async def test_a_box_without_other_work_takes_whatever_comes() -> None:
    gated = Gated()
    gated.use_up()
    gated.gate.departed(gated.record.camera.id)
    for live in [frame for frame in gated.core if not frame.ended]:
        gated.bench.driver.scheduler.handle(None, live.request.deadline_ns + 1)
    gated.clock.now_ns += 10 * MS
    # Everything that waited has expired, so nothing waits.
    assert gated.bench.driver.scheduler.queue_length == 0
    before = len(gated.core)
    gated.arrive()
    assert len(gated.core) == before + 1


async def test_a_held_frame_ends_with_its_camera() -> None:
    gated = Gated()
    held = gated.use_up()
    gated.gate.departed(gated.record.camera.id)
    ending = gated.bench.ending(held)
    assert isinstance(ending, Refusal)
    assert ending.reason is DropReason.DEPARTED
    assert not gated.gate.held
