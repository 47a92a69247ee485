"""A box that shall refuse whom it could only serve at others' expense, over real sockets."""

import asyncio
from pathlib import Path

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.requests import CameraId
from edgebox.link.messages import Welcome
from edgebox.media.sources import PictureSource
from edgebox.runtime.peers import NAMES_PER_CAMERA
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import PICTURE, SIZE_PX, get_json, gone, running, texts, until
from tests.end_to_end.wire import WireCamera

LATER_THAN_ANY_BATCH_MS = 20_000.0


def demanding_hz(app: App, share: float) -> float:
    """Return the rate that takes this share of the box's time at the smallest size."""
    [profiles] = app.box.profiles.values()
    smallest = min(profiles.values(), key=lambda profile: profile.mean_ns(1))
    per_frame_ns = min(smallest.mean_ns(size) / size for size in smallest.batch_sizes)
    return share * 1e9 / per_frame_ns


async def test_who_would_take_the_service_of_others_is_refused_until_there_is_room(
    database: Path,
) -> None:
    async with running(database, planner__admission="refuse") as app:
        rate_hz = demanding_hz(app, 0.55)
        wish = {"slo_ms": LATER_THAN_ANY_BATCH_MS, "rate_hz": rate_hz, "min_rate_hz": rate_hz}
        remarks: list[str] = []
        first = WireCamera(app, "first", instance="one", **wish)
        async with first:
            second = WireCamera(app, "second", **wish)
            await second.connect()
            await second.text(second.hello.encode())
            error = await second.error("no_capacity")
            assert error.fatal
            assert "with second, it could not be served beside the others (128" in error.message
            assert "equest a lower rate_hz or min_rate_hz" in error.message
            assert "or try again in 15 s" in error.message
            assert await second.ended() == 4011
            await second.close()
            # Less is no burden, and the one that is served notices nothing.
            async with WireCamera(app, "modest", slo_ms=LATER_THAN_ANY_BATCH_MS) as modest:
                await modest.result(await modest.frame())
            await first.result(await frame_over_a_fast_link(app, first))
            daemon = asyncio.create_task(patient(app, rate_hz, remarks))
            await until(lambda: app.box.refusals.counts["no_capacity"] >= 3, "two more attempts")
            # One who connects again takes its own place.
            async with WireCamera(app, "first", instance="one", **wish) as again:
                await again.result(await again.frame())
        await gone(app, "first")
        await daemon
        _, state = await get_json(app, "/v1/state")
        assert state["box"]["refused"] == {"no_capacity": app.box.refusals.counts["no_capacity"]}
        assert any("the box refuses for now: this box refuses cameras" in of for of in remarks)
        # People are told of a camera, not of each of its attempts.
        notices = [text for text in texts(app, "warning") if "was refused" in text]
        assert [text.split()[0] for text in notices] == ["second", "patient"]
        record = app.box.cameras[CameraId("patient")]
        assert record.camera.min_rate_hz == rate_hz


async def frame_over_a_fast_link(app: App, camera: WireCamera) -> int:
    """Send a frame that arrives as soon as it is sent; return its number.

    How long it takes on the way says how busy this machine is. The box believes a camera whose
    clock it knows.
    """
    clock = app.box.cameras[CameraId(camera.hello.camera)].link.clock
    await until(lambda: clock.offset_ns is not None, "the camera's clock")
    return await camera.frame(sent_ns=camera.clock_ns() + round(PATIENCE_S * 1e9))


async def patient(app: App, rate_hz: float, remarks: list[str]) -> None:
    """Stream from a real camera until it has been answered once."""
    source = PictureSource(SIZE_PX, 10.0, lambda number: PICTURE)
    camera = Camera(
        source,
        app.url,
        name="patient",
        slo_ms=LATER_THAN_ANY_BATCH_MS,
        rate_hz=rate_hz,
        min_rate_hz=rate_hz,
        on_remark=remarks.append,
    )
    run = asyncio.create_task(camera.run())
    await until(lambda: camera.summary().on_time >= 1, "its first answer")
    camera.stop()
    await run


async def test_of_two_that_come_at_once_the_box_judges_one_beside_the_other(database: Path) -> None:
    async with running(database, planner__admission="refuse") as app:
        rate_hz = demanding_hz(app, 0.55)
        wish = {"slo_ms": LATER_THAN_ANY_BATCH_MS, "rate_hz": rate_hz, "min_rate_hz": rate_hz}
        pair = [WireCamera(app, name, **wish) for name in ("one", "two")]
        for camera in pair:
            await camera.connect()
        await asyncio.gather(*(camera.text(camera.hello.encode()) for camera in pair))
        await until(lambda: all(camera.received for camera in pair), "two answers")
        assert sum(isinstance(camera.received[0], Welcome) for camera in pair) == 1
        assert app.box.refusals.counts == {"no_capacity": 1}
        for camera in pair:
            await camera.close()


async def test_a_box_refuses_nobody_for_want_of_time_unless_it_is_told_to(database: Path) -> None:
    async with running(database) as app:
        rate_hz = demanding_hz(app, 0.55)
        wish = {"slo_ms": LATER_THAN_ANY_BATCH_MS, "rate_hz": rate_hz, "min_rate_hz": rate_hz}
        async with WireCamera(app, "one", **wish), WireCamera(app, "two", **wish):
            advised = app.box.cameras
            await until(
                lambda: any(
                    of.advice is not None and "the least that is of use" in of.advice.reason
                    for of in advised.values()
                ),
                "advice that says who is best effort",
            )
        assert not app.box.refusals.counts


async def test_endless_names_from_one_address_are_kept_out(database: Path) -> None:
    names_max = 2 * NAMES_PER_CAMERA
    async with running(database, limits__cameras_max=2) as app:
        storage = app._storage
        assert storage is not None
        before = len(await storage.cameras())
        for number in range(names_max):
            async with WireCamera(app, f"made-up-{number}"):
                pass
            await gone(app, f"made-up-{number}")
        for number in range(names_max, 2 * names_max):
            camera = WireCamera(app, f"made-up-{number}")
            await camera.connect()
            await camera.text(camera.hello.encode())
            error = await camera.error("box_full")
            assert "give cameras names that stay the same" in error.message
            await camera.close()
        async with WireCamera(app, "made-up-0"):
            pass  # it is known
        assert app.box.refusals.counts == {"box_full": names_max}
        assert len(app.box.cameras) == names_max
        await storage.flush()
        assert len(await storage.cameras()) == before + names_max
