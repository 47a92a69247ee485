"""The pixels of frames that ended are freed at once: the garbage collector seldom looks."""

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from edgebox.media.jpeg import encode
from edgebox.runtime.frames import FrameResult, PendingFrame, one_shot_frame, one_shot_request
from tests.end_to_end.running import until
from tests.runtime.driving import Bench, ManualExecutor, settle

WHITE = np.full((234, 416, 3), 255, np.uint8)


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Free nothing that is part of a reference cycle."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class ForgetfulExecutor(ManualExecutor):
    """Keeps no picture of a batch that has been answered."""

    def answer(self) -> None:
        """Answer the last batch."""
        self.batches.pop().complete()


async def test_an_answered_frame_leaves_nothing_of_its_jpeg() -> None:
    executor = ForgetfulExecutor()
    bench = Bench(executor, needs_pixels=True)
    jpeg = memoryview(encode(WHITE))
    kept = weakref.ref(jpeg)
    bench.submit(slo_ms=60_000, jpeg=jpeg)
    del jpeg
    await until(lambda: bool(executor.batches), "its batch")
    executor.answer()
    await settle()
    assert bench.driver.frames_pending == 0
    await until(lambda: kept() is None, "the JPEG to be freed")
    await bench.driver.stop(1)


async def test_an_answered_picture_of_a_program_leaves_nothing_of_its_pixels() -> None:
    executor = ForgetfulExecutor()
    bench = Bench(executor, needs_pixels=True)
    ended: list[FrameResult] = []
    rgb = WHITE.copy()
    kept = weakref.ref(rgb)

    def on_end(frame: PendingFrame, ending: FrameResult) -> None:
        ended.append(ending)

    variant = next(iter(bench.driver.variants))
    request = one_shot_request(
        bench.driver.next_request_id(),
        rgb,
        (416, 234),
        variant,
        app="counter",
        now_ns=bench.driver.clock_ns(),
        deadline_ms=60_000,
    )
    bench.driver.submit(one_shot_frame(request, rgb, on_end))
    del rgb
    await until(lambda: bool(executor.batches), "its batch")
    executor.answer()
    await until(lambda: len(ended) == 1, "its answer")
    await until(lambda: kept() is None, "the pixels to be freed")
    await bench.driver.stop(1)
