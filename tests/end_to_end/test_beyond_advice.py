"""A camera that sends far more often than it was advised to."""

from pathlib import Path

from edgebox.link.messages import Ack, DropNotice, Result
from edgebox.runtime.frames import BEYOND_ADVICE
from tests.end_to_end.running import (
    assert_adds_up,
    counts_of,
    running,
    unharmed_bystander,
    until,
)
from tests.end_to_end.wire import WireCamera

BURST = 100
BURSTS_MAX = 100


def beyond(camera: WireCamera) -> list[DropNotice]:
    """Return what a camera was told of frames beyond its advice."""
    drops = (each for each in camera.received if isinstance(each, DropNotice))
    return [each for each in drops if each.message == BEYOND_ADVICE]


def ended(camera: WireCamera) -> list[int]:
    """Return the frames that a camera was told the end of."""
    return [each.frame for each in camera.received if isinstance(each, DropNotice | Result)]


async def test_each_frame_beyond_the_advice_is_answered_and_counted_and_others_are_unharmed(
    database: Path,
) -> None:
    async with (
        running(database) as app,
        unharmed_bystander(app),
        WireCamera(app, "greedy", slo_ms=500.0, rate_hz=5.0) as camera,
    ):
        sent = 0
        while not beyond(camera) and sent < BURST * BURSTS_MAX:
            for _ in range(BURST):
                await camera.frame()
            sent += BURST
        assert beyond(camera), "no burst was more than the box can answer at once"
        await until(lambda: not counts_of(app, "greedy").pending, "all frames to end")
        await until(lambda: len(ended(camera)) == sent, "what became of them")
        counts = counts_of(app, "greedy")
        assert_adds_up(counts.captured, counts.on_time, counts.late, counts.dropped)
        assert counts.captured == sent
        acked = [each for each in camera.received if isinstance(each, Ack)]
        assert [each.frame for each in acked] == list(range(1, sent + 1))
        assert sorted(ended(camera)) == list(range(1, sent + 1))
        refused = {each.frame for each in acked if not each.accepted}
        assert {each.frame for each in beyond(camera)} <= refused
