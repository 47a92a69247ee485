"""Frames that cannot be used: each is told why, is counted, and harms no other camera."""

import struct
from pathlib import Path

import pytest

from edgebox.domain.requests import DropReason
from edgebox.link.messages import Ack
from tests.end_to_end.running import counts_of, gone, running, texts, unharmed_bystander, until
from tests.end_to_end.wire import JPEG, WireCamera, jpeg_claiming

pytestmark = pytest.mark.usefixtures("few_sizes")

FRAME_BYTES_MAX = 30_000


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (JPEG[: len(JPEG) // 2], "truncated"),
        (JPEG[:10], "truncated JPEG"),
        (b"GIF89a" + bytes(100), "not a JPEG: it must start with the bytes FF D8"),
        (b"", "not a JPEG"),
        (b"\xff\xd8" + bytes(500), "no marker at byte 2"),
        (jpeg_claiming(30_000, 30_000), "30000 × 30000 px: at most 8192 px a side"),
        (jpeg_claiming(320, 180), "broken"),
        (JPEG + bytes(FRAME_BYTES_MAX), "at most 30000 are taken (limits.frame_bytes_max)"),
    ],
    ids=[
        "half",
        "header-only",
        "gif",
        "empty",
        "zeros",
        "bomb",
        "no-picture",
        "over-frame_bytes_max",
    ],
)
async def test_a_bad_picture_is_refused_and_the_next_one_served(
    database: Path, picture: bytes, message: str
) -> None:
    async with running(database, limits__frame_bytes_max=FRAME_BYTES_MAX) as app:
        async with unharmed_bystander(app), WireCamera(app) as camera:
            notice = await camera.drop(await camera.frame(picture))
            assert notice.reason is DropReason.INVALID
            assert message in notice.message
            good = await camera.result(await camera.frame())
            assert good.outcome == "on_time"
        await gone(app, "gate")
        counts = counts_of(app, "gate")
        assert (counts.captured, counts.on_time, counts.pending) == (2, 1, 0)
        assert counts.dropped == {"invalid": 1}


async def test_an_ack_says_whether_a_frame_was_accepted(database: Path) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        await camera.drop(await camera.frame(b"no"))
        await camera.result(await camera.frame())
        acks = [received for received in camera.received if isinstance(received, Ack)]
        assert [(ack.frame, ack.accepted) for ack in acks] == [(1, False), (2, True)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"", "a header of 32 bytes"),
        (b"F", "a header of 32 bytes"),
        (struct.pack("<BBHIQQHHI", 71, 1, 32, 1, 1, 1, 1, 1, 1), "kind must be 70, not 71"),
        (struct.pack("<BBHIQQHHI", 70, 9, 32, 1, 1, 1, 1, 1, 1), "version must be 1, not 9"),
        (struct.pack("<BBHIQQHHI", 70, 1, 8, 1, 1, 1, 1, 1, 1), "header_bytes must be from 32"),
        (struct.pack("<BBHIQQHHI", 70, 1, 999, 1, 1, 1, 1, 1, 1), "header_bytes must be from 32"),
        (struct.pack("<BBHIQQHHI", 70, 1, 32, 1, 9, 1, 1, 1, 1), "must not be before its captured"),
        (struct.pack("<BBHIQQHHI", 70, 1, 32, 1, 1, 1, 0, 1, 1), "width_px and height_px"),
    ],
)
async def test_a_wrong_header_is_an_error_that_is_not_fatal(
    database: Path, message: bytes, expected: str
) -> None:
    async with running(database) as app:
        async with unharmed_bystander(app), WireCamera(app) as camera:
            await camera.binary(message)
            error = await camera.error("bad_message")
            assert expected in error.message
            assert not error.fatal
            await camera.result(await camera.frame())
        assert counts_of(app, "gate").captured == 1


async def test_a_message_over_the_hard_limit_ends_the_connection(database: Path) -> None:
    async with running(database, limits__frame_bytes_max=FRAME_BYTES_MAX) as app:
        async with unharmed_bystander(app), WireCamera(app) as camera:
            await camera.frame(JPEG + bytes(3 * FRAME_BYTES_MAX))
            error = await camera.error("too_large")
            assert error.fatal
            assert "at most 30000 bytes (limits.frame_bytes_max)" in error.message
            assert await camera.ended() == 4005
        await gone(app, "gate")
        assert any("frame_bytes_max" in text for text in texts(app, "warning"))


@pytest.mark.all_sizes
async def test_a_camera_whose_header_lies_about_its_own_picture_gets_boxes_inside_it(
    database: Path,
) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        result = await camera.result(await camera.frame(width_px=64, height_px=4000))
        for detection in result.detections:
            x1, y1, x2, y2 = detection.box
            assert 0 <= x1 <= x2 <= 64
            assert 0 <= y1 <= y2 <= 4000


async def test_a_frame_number_used_twice_is_answered_twice(database: Path) -> None:
    async with running(database) as app:
        async with WireCamera(app) as camera:
            await camera.frame(frame=7)
            await camera.frame(frame=7)
            await until(lambda: counts_of(app, "gate").on_time == 2, "two answers")
        assert counts_of(app, "gate").pending == 0


async def test_more_frames_than_may_wait_push_the_oldest_out(database: Path) -> None:
    async with running(database, limits__pending_per_camera_max=2) as app:
        async with WireCamera(app) as camera:
            for _ in range(30):
                await camera.frame()
            await camera.result(30)
            await until(lambda: counts_of(app, "gate").pending == 0, "all to end")
            refused = next(
                received
                for received in camera.received
                if getattr(received, "reason", "") == "overload"
            )
        counts = counts_of(app, "gate")
        assert counts.captured == 30
        assert counts.dropped["overload"] == counts.captured - counts.on_time - counts.late
        assert "more frames are at the box than it can answer" in refused.message  # type: ignore[union-attr]


@pytest.mark.parametrize("captured_total", [0, 2**32 - 1])
async def test_an_absurd_total_cannot_break_the_sum(database: Path, captured_total: int) -> None:
    async with running(database) as app:
        async with WireCamera(app) as camera:
            await camera.result(await camera.frame(captured_total=captured_total))
            await camera.result(await camera.frame())
        counts = counts_of(app, "gate")
        assert counts.pending == 0
        assert counts.on_time == 2
