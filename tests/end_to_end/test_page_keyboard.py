"""The page by keyboard, and what a person hears of it: keys, focus, titles, the skip link."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.end_to_end.browsing import eventually, new_page, open_page, street
from tests.end_to_end.running import running, streaming

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

LABEL = "document.activeElement?.getAttribute('aria-label')"
TITLES = {
    "#/boxes": ("Boxes", "Boxes"),
    "#/scheduler": ("Scheduler", "Scheduler"),
    "#/models": ("Models", "Models"),
    "#/add": ("Add a camera", "Add a camera"),
    "#/settings": ("Settings", "Settings"),
    "#/cameras/gate": ("Camera gate", "Camera gate"),
    "#/": ("Cameras", "Cameras"),
}
"""What the title of each page begins with, and the label of what has the focus there."""


async def test_the_timeline_takes_keys_only_while_it_has_the_focus(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await new_page(browser, viewport={"width": 900, "height": 400})
        await page.goto(f"{app.url}/#/scheduler")
        canvas = page.get_by_test_id("timeline")
        await expect(canvas).to_be_visible()
        await expect(page.get_by_test_id("plan").locator("tbody tr")).to_have_count(1)
        for key, down in (("Space", True), ("End", True), ("Home", False), ("ArrowDown", True)):
            await scrolled(page, key, down)
        await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
        await canvas.press("Space")
        await expect(page.get_by_role("button", name="Resume")).to_be_visible()
        await page.keyboard.press("Space")
        await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()


async def scrolled(page: Page, key: str, down: bool) -> None:
    """Press a key until the page was moved down, or is at its top again.

    A page whose content still comes in may be too short to move.
    """

    async def pressed() -> Any:
        await page.keyboard.press(key)
        return await page.evaluate("window.scrollY")

    await eventually(pressed, lambda y: (y > 0) is down, f"{key} to move the page")


async def focused(page: Page, label: str) -> None:
    """Wait until what has this label has the focus."""
    await eventually(lambda: page.evaluate(LABEL), lambda found: found == label, "the focus")


async def test_a_page_that_is_gone_to_has_its_title_and_the_focus(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        async with streaming(app, "gate"):
            pass
        page, complaints = await open_page(browser, app)
        await expect(page).to_have_title("Cameras · edgebox")
        await expect(page.get_by_test_id("camera-tile")).to_be_visible()
        assert await page.evaluate("document.activeElement === document.body")
        for place, (title, label) in TITLES.items():
            await page.evaluate("(place) => { location.hash = place }", place)
            await expect(page).to_have_title(f"{title} · edgebox")
            await focused(page, label)
        await page.reload()
        await expect(page.get_by_test_id("camera-tile")).to_be_visible()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
        await page.keyboard.press("Enter")
        assert await page.evaluate(LABEL) == "Cameras"
        await expect(page).to_have_url(f"{app.url}/#/")
        assert complaints == []
