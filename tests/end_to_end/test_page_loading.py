"""Leaving a page while its code is still on its way, and as soon as it is there, in Chromium."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from edgebox.app.composition import App
from tests.conftest import PATIENCE_S
from tests.end_to_end.browsing import PATIENCE_MS, new_page, street
from tests.end_to_end.running import running, streaming

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

PLACES = (
    "#/boxes",
    "#/scheduler",
    "#/models",
    "#/cameras/gate",
    "#/settings",
    "#/add",
    "#/access",
    "#/",
)


class Held:
    """Requests of a page that get no answer until they are released."""

    def __init__(self) -> None:
        self.any = asyncio.Event()
        self.released = asyncio.Event()

    async def hold(self, route: Route) -> None:
        self.any.set()
        await self.released.wait()
        await route.continue_()


async def go(page: Page, place: str) -> None:
    await page.evaluate("(hash) => { location.hash = hash }", place)


async def settled(page: Page) -> None:
    """Wait until a page is shown whole."""
    await expect(page.locator('main[aria-busy="true"]')).to_have_count(0, timeout=PATIENCE_MS)
    await expect(page.locator("main")).to_have_count(1)


async def opened(browser: Browser, app: App) -> tuple[Page, list[str]]:
    page, complaints = await new_page(browser)
    await page.goto(f"{app.url}/")
    await expect(page.get_by_test_id("camera-tile")).to_be_visible(timeout=PATIENCE_MS)
    return page, complaints


async def test_a_page_is_left_while_its_code_is_on_its_way(
    database: Path, browser: Browser
) -> None:
    async with (
        running(database, access__open_scope="admin") as app,
        streaming(app, "gate", **street(1.0)),
    ):
        for place in PLACES[:-1]:
            page, complaints = await opened(browser, app)
            held = Held()
            await page.route("**/assets/*", held.hold)
            await go(page, place)
            await asyncio.wait_for(held.any.wait(), PATIENCE_S)
            await expect(page.locator('main[aria-busy="true"]')).to_be_visible()
            for other in PLACES[::-1]:
                await go(page, other)
            await go(page, "#/")
            held.released.set()
            await settled(page)
            await expect(page.get_by_test_id("camera-tile")).to_be_visible()
            await go(page, place)
            await settled(page)
            assert complaints == [], place
            await page.context.close()


async def test_pages_change_in_any_order_over_a_slow_link(database: Path, browser: Browser) -> None:
    async with (
        running(database, access__open_scope="admin") as app,
        streaming(app, "gate", **street(1.0)),
    ):
        page, complaints = await opened(browser, app)
        session = await page.context.new_cdp_session(page)
        await session.send("Network.enable")
        await session.send(
            "Network.emulateNetworkConditions",
            {
                "offline": False,
                "latency": 40,
                "downloadThroughput": 200_000,
                "uploadThroughput": 200_000,
            },
        )
        for first in PLACES:
            for second in PLACES:
                # Within one task, and with a picture drawn in between.
                await page.evaluate(
                    "([a, b]) => { location.hash = a; location.hash = b }", [first, second]
                )
                await go(page, first)
                await page.evaluate("() => new Promise(requestAnimationFrame)")
                await go(page, second)
        await settled(page)
        for place in PLACES:
            await go(page, "#/scheduler")
            await expect(page.get_by_test_id("timeline")).to_be_visible(timeout=PATIENCE_MS)
            await go(page, place)
            await settled(page)
        assert complaints == []


async def test_a_camera_that_is_alone_is_large_and_the_verdict_stays_in_view(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app, streaming(app, "gate", **street(1.0)):
        page, _ = await opened(browser, app)
        await page.set_viewport_size({"width": 1440, "height": 600})
        await expect(page.get_by_test_id("camera-tile").get_by_test_id("latency")).to_be_visible()
        assert await page.evaluate("scrollY") == 0
        await expect(page.get_by_role("heading", name="edgebox")).to_be_in_viewport()
