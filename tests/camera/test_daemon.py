"""The daemon against a box that speaks the protocol: every captured frame ends exactly once."""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from statistics import mean

import numpy as np
import pytest

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import FINISHED, Camera
from edgebox.domain.errors import InvalidInputError
from edgebox.link.box_address import stream_url
from edgebox.link.messages import Bye, ErrorMessage, FrameHeader, Result
from edgebox.link.sender import send_sizes
from edgebox.link.shaping import BandwidthTrace
from edgebox.media.sources import PictureSource
from tests.camera.box import Box, advice
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import SLO_MS, free_port, until

NOISE = np.random.default_rng(1).integers(0, 256, (180, 320, 3), dtype=np.uint8)
LIGHT = np.full((180, 320, 3), 128, dtype=np.uint8)
"""A picture of few bytes: a busy machine, too, carries it at the rate and size wanted."""


def source(rate_hz: float = 40.0, count: int | None = None) -> PictureSource:
    return PictureSource((320, 180), rate_hz, lambda number: NOISE, count)


def camera(box: Box, frames: PictureSource | None = None, **options: object) -> Camera:
    defaults: dict[str, object] = {
        "name": "gate",
        "rate_hz": 40.0,
        "rng": random.Random(1),
        "slo_ms": SLO_MS,
    }
    return Camera(frames or source(), box.url, **(defaults | options))  # type: ignore[arg-type]


def assert_adds_up(summary: Summary) -> None:
    assert summary.pending == 0
    ended = summary.on_time + summary.late + sum(summary.dropped.values())
    assert summary.captured == ended
    unsent = summary.dropped.get("sender", 0) + summary.dropped.get("plan", 0)
    assert sum(summary.skipped.values()) == unsent
    assert summary.skipped.get("rate", 0) == summary.dropped.get("plan", 0)
    assert summary.captured == summary.sent + unsent
    assert summary.accepted <= summary.sent


def assert_all_answered(summary: Summary) -> None:
    """Insist that what was sent was answered in time; a busy machine may leave frames out.

    A frame that still waits to be sent when the run ends counts as offline.
    """
    assert_adds_up(summary)
    assert summary.on_time == summary.sent > 0
    assert set(summary.skipped) <= {"window", "rate", "offline"}


async def test_every_frame_is_answered_on_time_by_a_quick_box() -> None:
    results: list[Result] = []
    async with Box() as box:
        frames = PictureSource((320, 180), 40.0, lambda number: LIGHT, 30)
        summary = await camera(box, frames, on_result=results.append).run()
    assert_all_answered(summary)
    assert summary.captured == 30
    assert summary.detections == {"car": summary.on_time}
    assert len(results) == summary.on_time
    assert summary.variants == {"street-256": len(results)}
    assert set(summary.latency_ms) == {"network", "queue", "inference", "return", "total"}
    assert box.sizes[0] == (256, 144)  # later, a busy machine looks like a slow link
    assert set(box.sizes) <= set(send_sizes((320, 180), advice()))
    assert summary.width_sent_mean_px == round(mean(width for width, _ in box.sizes), 1)
    assert [h.frame for h in box.headers] == sorted({h.frame for h in box.headers})
    assert {(h.width_px, h.height_px) for h in box.headers} == {(320, 180)}
    assert all(h.frame <= h.captured_total <= 30 for h in box.headers)
    assert all(h.captured_ns <= h.sent_ns for h in box.headers)


async def test_says_hello_answers_pings_reports_and_says_bye() -> None:
    async with Box() as box:
        summary = await camera(box).run(duration_s=0.3)
        await until(lambda: Bye(FINISHED) in box.received, "the box to hear the end")
    assert [hello.camera for hello in box.hellos] == ["gate"]
    assert box.hellos[0].width_px == 320
    assert abs(box.pongs()[0].camera_ns - time.monotonic_ns()) < 10_000_000_000
    last = box.reports()[-1]
    assert (last.captured, last.sent, last.on_time) == (
        summary.captured,
        summary.sent,
        summary.on_time,
    )
    assert box.received[-1] == Bye(FINISHED)
    assert_adds_up(summary)


async def test_drops_and_late_answers_are_told_apart() -> None:
    kinds = {0: "result", 1: "drop", 2: "late"}
    async with Box(answer=lambda header: kinds[header.frame % 3], late_after_s=2.1) as box:
        summary = await camera(box, source(count=30), slo_ms=2000.0).run()
    assert_adds_up(summary)
    counts = Counter(kinds[header.frame % 3] for header in box.headers)
    assert (summary.on_time, summary.late) == (counts["result"], counts["late"])
    assert summary.dropped["queue"] == counts["drop"]
    assert min(counts.values()) >= 1
    assert summary.accepted == summary.on_time + summary.late


async def test_frames_without_an_answer_end_as_lost() -> None:
    async with Box(answer=lambda header: "ignore") as box:
        async with asyncio.timeout(PATIENCE_S):
            summary = await camera(box, source(count=5), slo_ms=50.0).run()
    assert_adds_up(summary)
    assert summary.dropped["lost"] == summary.sent >= 1


async def test_at_most_two_frames_are_unacknowledged_and_the_newest_wins() -> None:
    async with Box(ack_after_s=0.08) as box:
        summary = await camera(box, source(rate_hz=100.0, count=60), rate_hz=100.0).run()
    assert_adds_up(summary)
    assert box.unacknowledged_most <= 2
    assert summary.skipped["window"] > 10
    assert summary.on_time > 3


async def test_obeys_new_advice_from_the_next_frame_on() -> None:
    box = Box(advice=advice(256))

    def narrower(header: FrameHeader) -> str:
        if header.frame >= 10:
            box.advice = advice(160)
        return "result"

    box.answer = narrower
    async with box:
        running = camera(box)
        run = asyncio.create_task(running.run())
        await until(lambda: [width for width, _ in box.sizes].count(160) >= 5, "obedience")
        running.stop()
        await run
    widths = [width for width, _ in box.sizes]
    obeyed_from = sum(header.frame < 10 for header in box.headers) + 1
    # After what was on its way. A busy machine looks like a slow link: they may be smaller.
    assert max(widths[:obeyed_from]) == 256
    assert max(widths[obeyed_from + 3 :]) == 160


async def test_never_sends_a_picture_larger_than_its_own() -> None:
    async with Box(advice=advice(608)) as box:
        await camera(box, source(count=3)).run()
    assert set(box.sizes) == {(320, 180)}


async def test_obeys_the_advised_rate() -> None:
    async with Box(advice=advice(rate_hz=10.0)) as box:
        summary = await camera(box, source(rate_hz=50.0)).run(duration_s=1.0)
    assert_adds_up(summary)
    assert 1 < summary.sent <= 10 * summary.duration_s + 4  # and the credit for jitter
    assert summary.skipped["rate"] > 4


async def test_a_shaped_link_really_delays_and_frames_shrink_to_fit() -> None:
    link = BandwidthTrace.constant(0.3)
    async with Box(advice=advice(256)) as box:
        summary = await camera(box, source(rate_hz=3.0), link=link, rate_hz=3.0, slo_ms=1000.0).run(
            duration_s=4.0
        )
    assert_adds_up(summary)
    for header, arrival_ns, size in zip(
        box.headers, box.arrivals_ns, box.message_bytes, strict=True
    ):
        assert arrival_ns - header.sent_ns >= size * 8 / 0.3e6 * 1e9 * 0.999
    assert summary.width_sent_mean_px is not None
    assert summary.width_sent_mean_px < 256
    # The noise of 256 px weighs about 37 KB: 1 s at this rate. Smaller, most can make it.
    on_the_link_s = [size * 8 / 0.3e6 for size in box.message_bytes]
    assert sum(s < 1.0 for s in on_the_link_s) > len(on_the_link_s) / 2
    assert summary.on_time > 0


async def test_survives_messages_it_does_not_understand() -> None:
    async with Box() as box:
        run = asyncio.create_task(camera(box, source(count=20)).run())
        await box.first_frame.wait()
        for text in (
            "[]",
            "{",
            '{"type":"news"}',
            '{"type":"ack","frame":-1}',
            '{"type":"result"}',
        ):
            await box.tell(text)
        summary = await run
        await until(lambda: Bye(FINISHED) in box.received, "the box to hear the end")
    assert_all_answered(summary)
    complaints = [message for message in box.received if isinstance(message, ErrorMessage)]
    assert len(complaints) == 5
    assert not any(complaint.fatal for complaint in complaints)


async def test_stop_ends_a_run_in_order() -> None:
    async with Box(result_after_s=0.1) as box:
        running = camera(box)
        run = asyncio.create_task(running.run())
        await until(lambda: running.summary().on_time >= 5, "answers")
        running.stop()
        summary = await run
    assert_adds_up(summary)
    assert "lost" not in summary.dropped


async def test_stop_ends_a_run_that_never_connected() -> None:
    box = Box()
    await box.start()
    await box.stop()
    running = camera(box)
    run = asyncio.create_task(running.run())
    await asyncio.sleep(0.05)
    running.stop()
    summary = await run
    assert summary.captured == 0


async def test_a_program_pushes_its_own_frames() -> None:
    answered: list[int] = []
    async with Box() as box:
        pushing = Camera(
            None,
            box.url,
            size_px=(320, 180),
            rate_hz=1000.0,
            on_result=lambda result: answered.append(result.frame),
        )
        async with pushing:
            sent = [pushing.send(NOISE)]
            await until(lambda: answered == sent, "its answer")
            sent.append(pushing.send(NOISE))
            with pytest.raises(InvalidInputError, match=r"\(180, 320, 3\)"):
                pushing.send(NOISE[:10])
        with pytest.raises(InvalidInputError, match="not open"):
            pushing.send(NOISE)
        summary = pushing.summary()
    assert answered == sent
    assert_adds_up(summary)


async def test_a_source_that_breaks_ends_the_run_with_its_message() -> None:
    class Broken:
        width_px, height_px, trouble = 320, 180, None

        def frames(self) -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
            yield NOISE
            raise InvalidInputError("the plug was pulled")

        def close(self) -> None:
            """Nothing to end."""

    async with Box() as box:
        broken = Camera(Broken(), box.url)
        with pytest.raises(InvalidInputError, match="the plug"):
            await broken.run()
    assert broken.summary().on_time == 1


async def test_a_defect_of_a_source_is_no_end_of_it() -> None:
    class Broken:
        width_px, height_px, trouble = 320, 180, None

        def frames(self) -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
            yield NOISE
            raise RuntimeError("a defect")

        def close(self) -> None:
            """Nothing to end."""

    async with Box() as box:
        with pytest.raises(RuntimeError, match="a defect"):
            await Camera(Broken(), box.url).run()


async def test_entering_that_is_given_up_leaves_nothing_running() -> None:
    opening = Camera(None, f"ws://127.0.0.1:{free_port()}", size_px=(320, 180))
    entering = asyncio.create_task(opening.__aenter__())
    await until(lambda: opening.status().remark != "", "an attempt to connect")
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_run_that_is_cancelled_closes_its_source() -> None:
    closed = threading.Event()

    class Endless:
        width_px, height_px, trouble = 320, 180, None

        def frames(self) -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
            while not closed.wait(0.01):
                yield NOISE

        def close(self) -> None:
            closed.set()

    async with Box() as box:
        running = Camera(Endless(), box.url)
        run = asyncio.create_task(running.run())
        await until(lambda: running.summary().on_time >= 1, "an answer")
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert closed.is_set()


def test_a_camera_that_no_box_would_take_is_refused_at_once() -> None:
    with pytest.raises(InvalidInputError, match=r"hello\.camera.*hello\.slo_ms"):
        Camera(source(), name="no spaces", slo_ms=0)
    with pytest.raises(InvalidInputError, match="size_px"):
        Camera(None)


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("box", "ws://box:8787/v1/stream"),
        ("box:99", "ws://box:99/v1/stream"),
        ("ws://10.0.0.7:8787/", "ws://10.0.0.7:8787/v1/stream"),
        ("https://box.example", "wss://box.example:443/v1/stream"),
        ("http://[::1]:80", "ws://[::1]:80/v1/stream"),
        ("wss://box.example/street/1/", "wss://box.example:443/street/1/v1/stream"),
        ("box:99/a%20b", "ws://box:99/a%20b/v1/stream"),
    ],
)
def test_addresses(server: str, url: str) -> None:
    assert stream_url(server) == url


@pytest.mark.parametrize(
    "server",
    ["", "ftp://box", "ws://", "box:port", "ws://box:99999", "ws://box/?a=b", "box#x", "box/a b"],
)
def test_wrong_addresses(server: str) -> None:
    with pytest.raises(InvalidInputError, match="must be an address"):
        stream_url(server)


def test_a_fingerprint_is_checked_before_there_is_a_loop() -> None:
    Camera(None, size_px=(320, 180), fingerprint="ab" * 32)
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits"):
        Camera(None, size_px=(320, 180), fingerprint="ab")
