"""Zones on the page of a camera, in a real Chromium: drawn by keys and by mouse, shown, removed."""

from pathlib import Path

import aiohttp
import pytest
from playwright.async_api import Browser, Route, expect

from tests.end_to_end.browsing import open_page, street
from tests.end_to_end.running import get_json, running, streaming

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]


async def test_zones_and_lines_are_drawn_and_removed(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, complaints = await open_page(browser, app, "#/cameras/gate")
        await page.get_by_role("button", name="Draw a zone").click()
        sheet = page.get_by_test_id("sheet")
        await expect(sheet).to_be_focused()
        for keys in (["ArrowUp"] * 10, ["ArrowRight"] * 10, ["ArrowDown"] * 10):
            for key in keys:
                await page.keyboard.press(key)
            await page.keyboard.press("Enter")
        await page.get_by_label("Name").fill("yard")
        await page.get_by_label("Event after s").fill("2")
        await page.get_by_role("button", name="Save").first.click()
        await expect(page.get_by_test_id("zones-saved")).to_have_text("yard is saved.")
        # The keyboard goes on where one draws, after saving and after removing.
        await expect(page.get_by_role("button", name="Draw a zone")).to_be_focused()
        await expect(page.get_by_test_id("zones").locator("polygon")).to_have_count(1)
        overrides = (await get_json(app, "/v1/cameras/gate"))[1]["overrides"]
        assert overrides["zones"] == [
            {
                "name": "yard",
                "points": [[0.5, 0.3], [0.7, 0.3], [0.7, 0.5]],
                "classes": [],
                "min_dwell_s": 2.0,
            }
        ]
        await page.get_by_role("button", name="Draw a line").click()
        box = await sheet.bounding_box()
        assert box is not None
        for share in (0.25, 0.75):
            place = {"x": box["width"] * share, "y": box["height"] / 2}
            await sheet.click(position=place)  # type: ignore[arg-type]
        await page.get_by_label("Name").fill("yard")
        await page.get_by_role("button", name="Save").first.click()
        await expect(page.get_by_test_id("zones-saved")).to_contain_text("names of their own")
        await page.get_by_label("Name").fill("entry")
        await page.get_by_role("button", name="Save").first.click()
        await expect(page.get_by_test_id("zones-saved")).to_have_text("entry is saved.")
        ((first, second),) = [
            line["points"]
            for line in (await get_json(app, "/v1/cameras/gate"))[1]["overrides"]["lines"]
        ]
        assert abs(first[0] - 0.25) < 0.01
        assert abs(second[0] - 0.75) < 0.01
        await page.get_by_role("button", name="Remove zone yard").click()
        await expect(page.get_by_test_id("zones").locator("polygon")).to_have_count(0)
        await expect(page.get_by_role("button", name="Draw a zone")).to_be_focused()
        await expect(page.get_by_test_id("line-counts")).to_contain_text("in,")
        assert [text for text in complaints if "400" not in text] == []


async def only_changes(route: Route) -> None:
    """Let pass what changes something: the page goes on with what it has seen."""
    if route.request.method == "GET":
        await route.abort()
    else:
        await route.continue_()


async def test_two_people_who_draw_at_once_keep_both_zones(
    database: Path, browser: Browser
) -> None:
    theirs = {"name": "theirs", "points": [[0, 0], [1, 0], [1, 1]]}
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await open_page(browser, app, "#/cameras/gate")
        await page.get_by_role("button", name="Draw a zone").click()
        await expect(page.get_by_test_id("sheet")).to_be_focused()
        to_form = page.get_by_role("button", name="Give the zone a name")
        for key in ("Enter", "ArrowUp", "Enter", "ArrowRight", "Enter"):
            await expect(to_form).to_be_disabled()
            await page.keyboard.press(key)
        await to_form.click()
        await expect(page.get_by_label("Name")).to_be_focused()
        await expect(page.get_by_label("Name")).to_be_in_viewport()
        await page.get_by_label("Name").fill("mine")
        await page.route("**/v1/cameras/gate", only_changes)
        async with (
            aiohttp.ClientSession() as client,
            client.patch(f"{app.url}/v1/cameras/gate", json={"zones": [theirs]}) as response,
        ):
            assert response.status == 200
        await page.get_by_role("button", name="Save").first.click()
        await expect(page.get_by_test_id("changed-meanwhile")).to_contain_text("zones and lines")
        await page.unroute("**/v1/cameras/gate")
        await page.get_by_role("button", name="Load what is set now").click()
        await expect(page.get_by_test_id("zones-saved")).to_contain_text("Your drawing is kept")
        await page.get_by_role("button", name="Save").first.click()
        await expect(page.get_by_test_id("zones-saved")).to_have_text("mine is saved.")
        overrides = (await get_json(app, "/v1/cameras/gate"))[1]["overrides"]
        assert [zone["name"] for zone in overrides["zones"]] == ["theirs", "mine"]
