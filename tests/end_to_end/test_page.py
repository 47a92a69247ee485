"""The page in a real Chromium, served by a real box that a real camera streams to."""

import asyncio
import contextlib
import re
import struct
from pathlib import Path

import numpy as np
import orjson
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from edgebox.app.composition import App
from edgebox.media.sources import PictureSource
from tests.end_to_end.browsing import (
    PATIENCE_MS,
    PHONE,
    STICKING_OUT,
    eventually,
    new_page,
    number,
    open_page,
    street,
    tile_of,
)
from tests.end_to_end.running import PICTURE, free_port, get_json, gone, running, streaming, until

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]


@pytest.mark.all_sizes
async def test_a_camera_is_shown_live_with_what_the_box_decided(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        async with streaming(app, "gate", **street()):
            page, complaints = await open_page(browser, app)
            tile = tile_of(page, "gate")
            await expect(tile).to_be_visible(timeout=PATIENCE_MS)
            await expect(page.get_by_test_id("connection")).to_have_text("Live")
            await expect(page.get_by_test_id("box-state")).to_have_attribute("data-ready", "true")
            await expect(tile.locator("canvas[data-frames] ~ p").first).to_contain_text(
                re.compile(r"\d+ (person|car|bus|truck|motorbike)|nothing found")
            )
            canvas = tile.locator("canvas[data-frames]")
            first = await number(canvas, "data-frames")
            await eventually(
                lambda: number(canvas, "data-frames"), lambda n: n >= first + 5, "more frames"
            )
            await expect(tile.get_by_test_id("on-time")).to_have_text(re.compile(r"\d\s?%"))
            await expect(tile.get_by_test_id("variant")).to_have_text(re.compile(r"street-\d+"))
            await expect(tile.get_by_test_id("reason")).to_have_text(re.compile(r"\d+ ?x|px|link"))
            await expect(tile.get_by_test_id("latency")).to_be_visible()
            # Alone it is large and stays so: there is nothing to make room for.
            await expect(tile.get_by_role("button", name="Less of gate")).to_have_count(0)
        await gone(app, "gate")
        await check_numbers(page, app)
        assert complaints == []


async def check_numbers(page: Page, app: App) -> None:
    """Insist that the page's counts are the box's, once nothing changes any more."""
    tile = tile_of(page, "gate")
    await expect(tile.get_by_test_id("picture-note")).to_contain_text("Disconnected")
    await tile.get_by_role("button", name="More of gate").click()
    state = (await get_json(app, "/v1/state"))[1]
    counts = state["cameras"][0]["counts"]
    dropped = sum(counts["dropped"].values())
    for shown in (tile.get_by_test_id("counts"), page.get_by_test_id("counts").last):
        for text in (
            f"{counts['captured']} captured",
            f"= {counts['on_time']} on time",
            f"+ {counts['late']} late",
            f"+ {dropped} dropped",
            "+ 0 pending",
            "adds up",
        ):
            await expect(shown).to_contain_text(text, timeout=PATIENCE_MS)
        await expect(shown).to_have_attribute("data-unaccounted", "0")
    (executor,) = state["box"]["executors"]
    assert executor["core_seconds"] > 0
    await expect(page.get_by_test_id("core-seconds")).to_have_text(
        f"{int(executor['core_seconds'] + 0.5):,} core-seconds"
    )
    advice = state["cameras"][0]["advice"]
    await expect(tile.get_by_test_id("variant")).to_have_text(advice["variant"])
    await expect(tile.get_by_test_id("reason")).to_have_text(advice["reason"])


async def test_what_the_model_sees_is_drawn(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await open_page(browser, app)
        canvas = tile_of(page, "gate").locator("canvas[data-frames]")
        await eventually(lambda: number(canvas, "data-boxes"), lambda n: n > 0, "boxes")


async def test_a_box_that_restarts_is_found_again(database: Path, browser: Browser) -> None:
    port = free_port()
    async with running(database, server__port=port) as app:
        page, _ = await open_page(browser, app)
        await expect(page.get_by_test_id("connection")).to_have_text("Live")
        await page.evaluate("window.notReloaded = true")
    connection = page.get_by_test_id("connection")
    await expect(connection).to_have_text("Connection lost", timeout=PATIENCE_MS)
    await expect(page.get_by_text("Connection to the box lost.")).to_be_visible()
    async with running(database, server__port=port) as app, streaming(app, "gate"):
        await expect(connection).to_have_text("Live", timeout=PATIENCE_MS)
        await expect(tile_of(page, "gate")).to_be_visible(timeout=PATIENCE_MS)
        assert await page.evaluate("window.notReloaded") is True


async def test_a_phone_needs_no_sideways_scrolling(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await open_page(browser, app, viewport=PHONE, device_scale_factor=2)
        await expect(tile_of(page, "gate")).to_be_visible(timeout=PATIENCE_MS)
        await expect(tile_of(page, "gate").get_by_test_id("variant")).to_be_visible()
        for _ in range(10):  # texts change all the time
            assert await page.evaluate(STICKING_OUT) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            await asyncio.sleep(0.1)


async def test_on_a_phone_the_names_of_cameras_that_have_left_can_be_read(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        async with streaming(app, "north-gate"), streaming(app, "south-gate"):
            pass
        page, _ = await open_page(browser, app, viewport=PHONE, device_scale_factor=2)
        name = tile_of(page, "north-gate").get_by_role("heading")
        await expect(name).to_be_visible(timeout=PATIENCE_MS)
        assert await name.evaluate("(name) => name.scrollWidth <= name.clientWidth")


async def test_a_cameras_long_name_leaves_room_for_the_cause(
    database: Path, browser: Browser
) -> None:
    name = "gate-" + "of-the-northern-yard-" * 2 + "1"
    closed = f"http://127.0.0.1:{free_port()}/"
    async with running(database, cameras=[{"name": name, "url": closed}]) as app:
        page, _ = await open_page(browser, app, viewport={"width": 1280, "height": 720})
        verdict = page.get_by_test_id("box-state")
        cause = verdict.get_by_text(re.compile("^source lost since .*: connection refused$"))
        await expect(cause).to_be_visible()
        cut = "(element) => element.scrollWidth > element.clientWidth"
        assert await verdict.get_by_text(f"{name}:", exact=True).evaluate(cut)
        assert not await cause.evaluate(cut)


async def test_cards_that_have_nothing_to_show_are_small(database: Path, browser: Browser) -> None:
    closed = f"http://127.0.0.1:{free_port()}/"
    async with running(database, cameras=[{"name": "yard", "url": closed}]) as app:
        page, _ = await open_page(browser, app, "#/cameras/yard")
        history = page.get_by_role("region", name="What happened")
        await expect(history).to_contain_text("Nothing has been kept of it.")
        assert (await height_px(history)) < 120
        await page.goto(f"{app.url}/#/scheduler")
        changes = page.get_by_test_id("changes")
        await expect(changes).to_contain_text(
            "Nothing has changed in the last 24 hours, or since the box started."
        )
        assert (await height_px(changes)) < 120


async def height_px(shown: Locator) -> float:
    box = await shown.bounding_box()
    assert box is not None
    return box["height"]


async def test_a_viewer_is_let_go_when_its_page_closes(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_page(browser, app)
        await until(lambda: app.box.shown.viewers == 1, "the viewer")
        await page.close()
        await until(lambda: app.box.shown.viewers == 0, "the viewer to leave")


COUNTING = """
window.decoded = 0
const decode = window.createImageBitmap.bind(window)
window.createImageBitmap = (...source) => { window.decoded += 1; return decode(...source) }
"""
SEEING = """
window.seen = new Set()
const look = () => {
  for (const tile of document.querySelectorAll('[data-testid=camera-tile]')) {
    const { top, bottom } = tile.querySelector('canvas').getBoundingClientRect()
    if (bottom > -100 && top < innerHeight + 100) window.seen.add(tile.dataset.camera)
  }
  requestAnimationFrame(look)
}
look()
"""
"""Collects which cameras were in view: tiles change places with how their cameras do."""


def camera_of(message: bytes | str) -> str | None:
    """Return whose frame came to the page; None: it is a document."""
    if isinstance(message, str):
        return None
    (length,) = struct.unpack_from("<I", message)
    camera: str = orjson.loads(message[4 : 4 + length])["camera"]
    return camera


SMALL = np.ascontiguousarray(PICTURE[:72, :128])
"""(72, 128, 3) RGB: sixteen cameras send it."""


async def test_cameras_out_of_view_are_neither_sent_nor_decoded(
    database: Path, browser: Browser
) -> None:
    names = [f"gate-{number:02}" for number in range(16)]
    came: list[str] = []
    async with running(database) as app, contextlib.AsyncExitStack() as cameras:
        page, _ = await new_page(browser, viewport={"width": 800, "height": 300})
        await page.add_init_script(COUNTING)
        await page.add_init_script(f"addEventListener('load', () => {{{SEEING}}})")
        page.on(
            "websocket",
            lambda socket: socket.on(
                "framereceived", lambda message: came.extend(filter(None, [camera_of(message)]))
            ),
        )
        for name in names:
            small = PictureSource((128, 72), 2.0, lambda number: SMALL)
            await cameras.enter_async_context(
                streaming(app, name, answered=False, source=small, rate_hz=2.0)
            )
        await page.goto(app.url)
        await expect(page.get_by_test_id("camera-tile")).to_have_count(16, timeout=PATIENCE_MS)
        canvas = tile_of(page, names[-1]).locator("canvas[data-frames]")

        async def frames_in_view() -> int:
            await canvas.evaluate("(canvas) => canvas.scrollIntoView({ block: 'center' })")
            return await number(canvas, "data-frames")

        await eventually(frames_in_view, lambda n: n > 1, "a frame")
        await page.evaluate("window.seen.clear()")
        before = await number(canvas, "data-frames")
        await eventually(frames_in_view, lambda n: n >= before + 2, "frames of those in view")
        assert len(await page.evaluate("[...window.seen]")) < len(names)
        came.clear()
        decoded = await page.evaluate("window.decoded")
        before = await number(canvas, "data-frames")
        await eventually(frames_in_view, lambda n: n >= before + 5, "more")
        seen = set(await page.evaluate("[...window.seen]"))
        assert names[-1] in seen
        assert set(came) <= seen
        # What came last before the count began may have been decoded after it.
        assert 5 <= await page.evaluate("window.decoded") - decoded <= len(came) + len(seen)
