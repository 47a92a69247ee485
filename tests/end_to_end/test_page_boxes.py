"""The page of all boxes of a fleet in a real Chromium, with two real boxes and one that is away."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.end_to_end.browsing import PHONE, STICKING_OUT, open_page
from tests.end_to_end.fleets import fleet
from tests.end_to_end.running import free_port, running, streaming

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]


def row_of(page: Page, box: str) -> Locator:
    return page.locator(f'[data-testid="box"][data-box="{box}"]')


async def test_every_box_stands_on_one_page_and_leads_to_its_own(
    database: Path, browser: Browser
) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    async with fleet(database, others=(away,), limits__cameras_max=7) as (first, second):
        page, complaints = await open_page(browser, first, viewport=PHONE)
        await page.get_by_role("link", name="Boxes").click()
        await expect(page).to_have_title("Boxes · box-0")
        for name in ("box-0", "box-1"):
            await expect(row_of(page, name)).to_have_attribute("data-standing", "serving")
            await expect(row_of(page, name)).to_contain_text("0 of 7 cameras")
            await expect(row_of(page, name)).to_contain_text(first.box.version)
        await expect(row_of(page, "box-0")).to_contain_text("this box")
        await expect(row_of(page, "box-1")).not_to_contain_text("this box")
        left_out = page.locator(f'[data-testid="left-out"] [data-address="{away}"]')
        await expect(left_out).to_contain_text("it cannot be reached: connection refused")
        sums = page.get_by_test_id("boxes-sums")
        await expect(sums).to_contain_text("2 up, 1 cannot be asked")
        assert await page.evaluate(STICKING_OUT) == []
        async with streaming(second, "gate", rate_hz=5.0):
            await expect(sums).to_contain_text("1 of at most 14")
        await row_of(page, "box-1").get_by_role("link", name=second.url).press("Enter")
        await expect(page).to_have_title("Cameras · box-1")
        await page.get_by_role("link", name="Boxes").click()
        await expect(row_of(page, "box-1")).to_contain_text("this box")
        assert complaints == []


async def test_a_box_alone_has_no_such_page(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, complaints = await open_page(browser, app, "#/boxes")
        await expect(page.get_by_role("main")).to_contain_text("This box is alone")
        await expect(page.get_by_role("link", name="Boxes")).to_have_count(0)
        assert complaints == []
