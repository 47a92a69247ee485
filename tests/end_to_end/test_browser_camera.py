"""The browser camera: a real Chromium films a street and streams it to a real box."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from edgebox.app.composition import App
from edgebox.domain.requests import CameraId
from edgebox.link.messages import BoxPong, ErrorMessage
from edgebox.web.page_folder import PAGE
from tests.end_to_end.browsing import (
    PATIENCE_MS,
    PHONE,
    STICKING_OUT,
    eventually,
    number,
    tile_of,
)
from tests.end_to_end.filming import INSECURE_HOST, CameraPage, SlowLink, film, filming
from tests.end_to_end.running import CLOSED, counts_of, free_port, get_json, gone, running, texts
from tests.end_to_end.wire import WireCamera

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

SLOW_BPS = 120_000.0
SMALLEST_PX = 128
HIDE = """
Object.defineProperty(document, 'hidden', { get: () => true });
document.dispatchEvent(new Event('visibilitychange'));
"""


@pytest.fixture(scope="session")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return film(tmp_path_factory.mktemp("film"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(street: Path) -> AsyncIterator[Browser]:
    assert (PAGE / "camera.html").is_file(), "build the page first: make page"
    async with filming(street) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def allowed(browser: Browser) -> BrowserContext:
    """A person who lets pages use the camera."""
    return await browser.new_context(permissions=["camera"])


async def left(app: App, camera: str) -> str:
    """Wait until a camera has left, and return why."""
    await gone(app, camera)
    return app.box.cameras[CameraId(camera)].left_because


async def test_frames_are_answered_drawn_and_counted_alike_on_both_sides(
    database: Path, allowed: BrowserContext
) -> None:
    async with running(database) as app:
        camera = await CameraPage.open(allowed, app.url)
        await camera.page.get_by_label("Site").fill("yard")
        await camera.start()
        await camera.shows("state", "Live")
        await camera.answered(12)
        site = (await get_json(app, "/v1/state"))[1]["cameras"][0]["site"]
        assert site == {"name": "yard", "inferred": False}
        overlay = camera.page.get_by_test_id("overlay")
        await eventually(lambda: number(overlay, "data-boxes"), lambda n: n > 0, "boxes")
        await camera.shows("on-time", re.compile(r"\d"))
        await camera.shows("latency", "ms")
        await camera.shows("variant", re.compile(r"street-\d+"))
        await camera.shows("why", re.compile(r"px"))
        record = app.box.cameras[CameraId("phone")]
        assert record.link.clock.offset_ns is not None
        assert (record.camera.width_px, record.camera.height_px) == (1280, 720)
        assert record.camera.slo_ns == 1_000_000_000
        await camera.stop()
        assert await left(app, "phone") == "it was stopped"
        captured, on_time, late, dropped, pending = await camera.counts()
        counts = counts_of(app, "phone")
        assert captured == on_time + late + dropped
        assert (pending, counts.pending) == (0, 0)
        assert (captured, dropped) == (counts.captured, sum(counts.dropped.values()))
        assert on_time + late == counts.on_time + counts.late
        assert on_time + late >= 12
        assert camera.complaints == []


async def test_a_camera_that_cannot_ping_its_socket_may_ask(database: Path) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        await camera.json(type="ping", id=7)
        assert (await camera.wait_for(BoxPong)).id == 7
        await camera.json(type="ping")
        assert "ping.id is missing" in (await camera.wait_for(ErrorMessage)).message


async def test_several_deadlines_are_asked_for(database: Path, allowed: BrowserContext) -> None:
    async with running(database) as app:
        words = "200 ms; until 1 s an answer is worth 0.3"
        camera = await CameraPage.open(allowed, app.url, deadline=words)
        await camera.start()
        await camera.answered(1)
        steps = app.box.cameras[CameraId("phone")].camera.steps
        assert [(step.by_ns, step.utility) for step in steps] == [(1_000_000_000, 0.3)]


@pytest.mark.all_sizes
async def test_a_slow_link_makes_the_frames_smaller(
    database: Path, allowed: BrowserContext
) -> None:
    async with running(database) as app, SlowLink().to(app) as link:
        camera = await CameraPage.open(allowed, link.url, rate_hz=2)
        await camera.start()
        await camera.answered(4)
        before_px = await eventually(
            camera.sent_width_px, lambda px: px >= 2 * SMALLEST_PX, "frames of a good size"
        )
        link.uplink_bps = SLOW_BPS
        await eventually(
            camera.sent_width_px, lambda px: 0 < px <= 0.7 * before_px, "smaller frames"
        )
        await camera.answered(2)
        assert SMALLEST_PX <= await camera.sent_width_px() <= 0.7 * before_px
        record = app.box.cameras[CameraId("phone")]
        assert record.advice is not None
        assert record.advice.bandwidth_bps < 3 * SLOW_BPS
        await camera.shows("link", "kbit/s")


async def test_a_refused_camera_is_explained(database: Path, street: Path) -> None:
    async with running(database) as app, filming(street, refused=True) as browser:
        camera = await CameraPage.open(await browser.new_context(), app.url)
        await camera.start()
        await camera.shows("error", "The camera was refused")
        await camera.shows("error", "press Start again")
        await camera.shows("state", "Off")
        assert not app.box.cameras


async def test_without_https_the_page_says_so_and_what_to_do(
    database: Path, browser: Browser
) -> None:
    async with running(database, server__allowed_hosts=[INSECURE_HOST]) as app:
        page = await (await browser.new_context()).new_page()
        await page.goto(f"http://{INSECURE_HOST}:{app.port}/camera")
        trouble = page.get_by_test_id("error")
        await expect(trouble).to_contain_text("needs https or localhost")
        await expect(trouble).to_contain_text(f"https://{INSECURE_HOST}")
        await expect(trouble).to_contain_text(f"adb reverse tcp:8787 tcp:{app.port}")
        await expect(page.get_by_role("button", name="Start the camera")).to_have_count(0)


async def test_of_two_tabs_with_one_name_the_first_goes_on(
    database: Path, allowed: BrowserContext
) -> None:
    async with running(database) as app:
        first = await CameraPage.open(allowed, app.url)
        await first.start()
        await first.answered(2)
        second = await CameraPage.open(allowed, app.url)
        await expect(second.page.get_by_text("two cannot be")).to_be_visible()
        await second.start()
        await second.shows("remark", "a camera named phone is connected")
        await first.shows("state", "Live")
        await first.answered(3)
        await first.stop()
        await second.shows("state", "Live")
        await second.answered(2)


async def test_a_box_that_restarts_is_found_again(database: Path, allowed: BrowserContext) -> None:
    port = free_port()
    async with running(database, server__port=port) as app:
        camera = await CameraPage.open(allowed, app.url)
        await camera.start()
        await camera.answered(2)
    await camera.shows("state", "No connection")
    await camera.shows("remark", re.compile(r"The box .*\. Trying again in \d+ s"))
    async with running(database, server__port=port) as app:
        await expect(camera.page.get_by_test_id("state")).to_have_text("Live", timeout=PATIENCE_MS)
        await camera.answered(3)
        await camera.shows("skipped", "no connection")
        await camera.stop()
        captured, on_time, late, dropped, _ = await camera.counts()
        assert captured == on_time + late + dropped


async def test_a_phone_whose_token_is_revoked_is_paired_anew(
    database: Path, allowed: BrowserContext
) -> None:
    async with running(database, **CLOSED) as app:
        camera = await CameraPage.open(allowed, app.url)
        for _ in range(2):
            code = app.access.begin_pairing(CameraId("phone")).shown
            await camera.page.get_by_label("Pairing code").fill(code)
            await camera.start()
            await camera.shows("state", "Live")
            (token,) = app.access.tokens
            await app.access.revoke(token.id)
            await camera.shows("note", "it is not paired with this box, or no longer")
        assert not camera.complaints


async def test_a_hidden_page_stops_and_says_so(database: Path, allowed: BrowserContext) -> None:
    async with running(database) as app:
        camera = await CameraPage.open(allowed, app.url)
        await camera.start()
        await camera.answered(2)
        await camera.page.evaluate(HIDE)
        assert await left(app, "phone") == "its page was hidden"
        await camera.shows("note", "Stopped, because this page was hidden")
        assert await camera.page.evaluate("document.querySelector('video').srcObject") is None


async def test_a_closed_page_says_goodbye(database: Path, allowed: BrowserContext) -> None:
    async with running(database) as app:
        camera = await CameraPage.open(allowed, app.url)
        await camera.start()
        await camera.answered(2)
        await camera.page.close()
        await gone(app, "phone")


async def test_it_is_shown_on_the_page_like_any_camera(
    database: Path, allowed: BrowserContext
) -> None:
    async with running(database) as app:
        camera = await CameraPage.open(allowed, app.url)
        await camera.start()
        await camera.answered(1)
        overview = await allowed.new_page()
        await overview.goto(app.url)
        await expect(tile_of(overview, "phone")).to_be_visible(timeout=PATIENCE_MS)
        assert any("phone connected" in text for text in texts(app))


async def test_a_phone_needs_no_sideways_scrolling(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        phone: dict[str, Any] = {"viewport": PHONE, "device_scale_factor": 2}
        context = await browser.new_context(permissions=["camera"], **phone)
        camera = await CameraPage.open(context, app.url)
        assert await camera.page.evaluate(STICKING_OUT) == []
        await camera.start()
        await camera.answered(2)
        assert await camera.page.evaluate(STICKING_OUT) == []
        assert (await camera.page.evaluate("document.documentElement.scrollWidth")) == 360


async def test_only_this_page_may_use_the_camera(database: Path) -> None:
    async with running(database) as app, aiohttp.ClientSession() as client:
        async with client.get(f"{app.url}/camera") as response:
            assert "camera=(self)" in response.headers["Permissions-Policy"]
            page = await response.text()
        async with client.get(app.url) as response:
            assert "camera=()" in response.headers["Permissions-Policy"]
        # Relative, so that it also works where a proxy serves the box under a path.
        addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert addresses
        assert all(address.startswith("./") for address in addresses), addresses
