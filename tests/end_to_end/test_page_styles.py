"""What one page loads does not change how another looks: a walk through all pages."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from edgebox.app.composition import App
from tests.end_to_end.browsing import PATIENCE_MS, new_page
from tests.end_to_end.fleets import in_fleet
from tests.end_to_end.running import running, streaming

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

PAGES = {
    "#/": "[data-testid=camera-tile]",
    "#/cameras/gate": "[data-testid=explanation]",
    "#/boxes": "[data-testid=left-out]",
    "#/scheduler": "[data-testid=timeline]",
    "#/models": "[data-testid=family]",
    "#/add": "[data-testid=lines]",
    "#/settings": "[data-testid=config]",
    "#/access": "main[aria-label=Access] form",
}
"""Each page's address and what is there once it is complete."""

SHEETS = "[...document.styleSheets].map(({ href }) => href)"

CHANGED = """
(own) => {
  const elements = [...document.querySelectorAll('body *')]
  const names = [...getComputedStyle(document.body)]
    .filter((name) => !/block|inline|-webkit-/.test(name))
  const look = () => elements.map((element) => [null, '::before'].map((part) => {
    const style = getComputedStyle(element, part)
    if (part && style.content === 'none') return []
    return names.map((name) => style.getPropertyValue(name))
  }))
  const all = look()
  const foreign = [...document.styleSheets].filter(({ href }) => !own.includes(href))
  for (const sheet of foreign) sheet.disabled = true
  const alone = look()
  for (const sheet of foreign) sheet.disabled = false
  const changed = elements.flatMap((element, at) => [0, 1].flatMap((part) =>
    names.filter((_, n) => all[at][part][n] !== alone[at][part][n]).map((name) =>
      `${element.outerHTML.slice(0, 80)}: ${name} is not as on a page opened first`)))
  return { foreign: foreign.length, looked: elements.length, changed: changed.slice(0, 20) }
}
"""
"""Compares all elements with and without the sheets of other pages, at one instant."""


async def go(page: Page, place: str) -> None:
    """Follow a link to a page, as it would be followed in the navigation."""
    await page.evaluate("(place) => { location.hash = place }", place)
    await expect(page.locator(PAGES[place]).first).to_be_visible(timeout=PATIENCE_MS)


async def own_sheets(page: Page, app: App) -> dict[str, list[str]]:
    """Return the style sheets that each page has when it is opened first."""
    own = {}
    for place, shows in PAGES.items():
        await page.goto("about:blank")
        await page.goto(f"{app.url}/{place}")
        await expect(page.locator(shows).first).to_be_visible(timeout=PATIENCE_MS)
        own[place] = await page.evaluate(SHEETS)
    return own


async def walk(page: Page, app: App, places: Sequence[str], own: dict[str, list[str]]) -> int:
    """Visit pages without a reload; return how many foreign sheets there were."""
    await page.goto("about:blank")
    await page.goto(f"{app.url}/{places[0]}")
    foreign = 0
    for place in places:
        await go(page, place)
        seen = await page.evaluate(CHANGED, own[place])
        assert seen["looked"] > 30, place
        assert seen["changed"] == [], f"{place} after {places[: places.index(place)]}"
        foreign += seen["foreign"]
    return foreign


async def test_pages_look_the_same_whatever_was_visited_before(
    database: Path, tmp_path: Path, browser: Browser
) -> None:
    async with running(database, access__open_scope="admin", **in_fleet(tmp_path)) as app:
        async with streaming(app, "gate"):
            pass
        page, _ = await new_page(browser, reduced_motion="reduce")
        own = await own_sheets(page, app)
        places = list(PAGES)
        for order in (places, places[::-1]):
            # The first page once more: by then every sheet has been loaded.
            assert await walk(page, app, [*order, order[0]], own) > len(PAGES)
