"""Every page in a real Chromium: accessible by axe's rules, and what else Lighthouse looks at."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Response, expect

from edgebox.app.composition import App
from edgebox.domain.requests import CameraId
from tests.end_to_end.browsing import (
    PATIENCE_MS,
    PHONE,
    eventually,
    new_page,
    number,
    street,
)
from tests.end_to_end.fleets import in_fleet
from tests.end_to_end.program import SOURCE_TREE
from tests.end_to_end.running import running, streaming

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

AXE = SOURCE_TREE / "webui" / "node_modules" / "axe-core" / "axe.min.js"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
DESKTOP = {"width": 1280, "height": 800}
LOAD_BYTES_MAX = 300_000
TEXTS = ("text/", "application/javascript", "image/svg")

PAGES = {
    "overview": ("", "[data-testid=camera-tile] canvas"),
    "camera": ("#/cameras/gate", "[data-testid=explanation]"),
    "boxes": ("#/boxes", "[data-testid=left-out]"),
    "scheduler": ("#/scheduler", "[data-testid=timeline]"),
    "models": ("#/models", "[data-testid=family]"),
    "add": ("#/add", "[data-testid=lines]"),
    "settings": ("#/settings", "[data-testid=config]"),
    "browser camera": ("camera", "main"),
}
"""Where each page is, and what is there once it has something to show."""

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RULES = """
async (runOnly) => {
  const found = await axe.run(document, { runOnly, resultTypes: ['violations'] })
  const wrong = found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map((node) => [id, node]))
    .map(([id, node]) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary}`)
  return { passed: found.passes.length, wrong }
}
"""

CLICKABLE = """
() => {
  const kinds = 'a[href], button, input, select, textarea, summary, [tabindex="0"]'
  const shown = [...document.querySelectorAll(kinds)]
    .filter((e) => !e.disabled)
    .filter((e) => e.checkVisibility() && e.tabIndex >= 0 && e.type !== 'file')
  shown.forEach((e, at) => { e.dataset.stop = at })
  return shown.map((e) => e.outerHTML.slice(0, 120))
}
"""
"""Marks what can be operated, and lists it."""

ROUNDS = 5
"""How often one goes through a page: a busy machine shows much of it only meanwhile."""

STILL_THERE = """
() => [...document.querySelectorAll('[data-stop]')].map((e) => Number(e.dataset.stop))
"""

FOCUSED = """
() => {
  const here = document.activeElement
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(here)
  return {
    stop: here.dataset.stop ?? null,
    seen: (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1) || boxShadow !== 'none',
    html: here.outerHTML.slice(0, 120),
  }
}
"""

SMALL = """
() => [...document.querySelectorAll('button, input, select, summary, [role=tab], nav a, a.button')]
  .filter((e) => e.checkVisibility() && getComputedStyle(e).position !== 'absolute')
  .map((e) => [e.closest('label') ?? e, e.outerHTML.slice(0, 120)])
  .map(([e, html]) => [e.getBoundingClientRect(), html])
  .filter(([box]) => box.width > 0 && (box.width < 24 || box.height < 24))
  .map(([box, html]) => `${box.width} x ${box.height}: ${html}`)
"""
"""What a finger would miss; links within sentences may be as high as their line."""


@pytest_asyncio.fixture(loop_scope="session")
async def app(database: Path, tmp_path: Path) -> AsyncIterator[App]:
    async with (
        running(database, **in_fleet(tmp_path)) as app,
        streaming(app, CameraId("gate"), **street()),
    ):
        yield app


async def at(page: Page, app: App, name: str) -> None:
    """Go to a page and wait for what it has to show."""
    place, shows = PAGES[name]
    await page.goto(f"{app.url}/{place}")
    await expect(page.locator(shows).first).to_be_visible(timeout=PATIENCE_MS)
    if name == "overview":
        canvas = page.locator("canvas[data-frames]").first
        await eventually(lambda: number(canvas, "data-frames"), lambda n: n > 0, "a frame")


async def test_axe_finds_nothing_serious(app: App, browser: Browser) -> None:
    assert AXE.is_file(), "axe is not installed: python webui/node.py npm ci"
    found = await asyncio.gather(
        *(violations(app, browser, theme, size) for theme in THEMES for size in (DESKTOP, PHONE))
    )
    assert "\n".join(wrong for page in found for wrong in page) == ""


async def violations(
    app: App, browser: Browser, theme: Literal["light", "dark"], size: dict[str, int]
) -> list[str]:
    """Return what axe finds serious or critical."""
    # Colours that are on their way to others would be judged by chance.
    page, _ = await new_page(browser, color_scheme=theme, viewport=size, reduced_motion="reduce")
    # The structure is the same in the dark.
    rules, at_least = (TAGS, 15) if theme == "light" else (["color-contrast"], 1)
    found: list[str] = []
    for name in PAGES:
        await at(page, app, name)
        await page.evaluate(AXE.read_text(encoding="utf-8"))
        report = await page.evaluate(RULES, rules)
        assert report["passed"] >= at_least, "axe has hardly looked"
        found += [f"{name}, {theme}, {size['width']} px: {wrong}" for wrong in report["wrong"]]
    return found


async def test_each_load_is_small_packed_kept_and_our_own(app: App, browser: Browser) -> None:
    for name in PAGES:
        page, complaints = await new_page(browser)
        answers = await answers_of(page, at(page, app, name))
        sizes = []
        for answer in answers:
            assert answer.url.startswith((app.url, "blob:", "data:")), "nothing from elsewhere"
            if answer.url.startswith(app.url):
                sizes.append((await answer.request.sizes())["responseBodySize"])
                check_headers(answer, await answer.all_headers(), app)
        assert 0 < sum(sizes) < LOAD_BYTES_MAX, name
        assert complaints == [], name
        await check_document(page, app)
        await page.context.close()


async def answers_of(page: Page, load: Awaitable[None]) -> list[Response]:
    """Return what came while a page was loaded."""
    answers: list[Response] = []

    def keep(answer: Response) -> None:
        answers.append(answer)

    page.on("response", keep)
    await load
    return answers


def check_headers(answer: Response, headers: dict[str, str], app: App) -> None:
    path = answer.url.removeprefix(app.url)
    if path.startswith("/assets/"):
        assert "immutable" in headers["cache-control"], path
    elif not path.startswith("/v1/"):
        assert headers["cache-control"] == "no-cache", path
    if headers["content-type"].startswith(TEXTS) and not path.startswith("/v1/"):
        assert headers.get("content-encoding") == "gzip", path


async def check_document(page: Page, app: App) -> None:
    head: dict[str, Any] = await page.evaluate(
        """() => ({
          title: document.title,
          lang: document.documentElement.lang,
          doctype: document.compatMode,
          viewport: document.querySelector('meta[name=viewport]')?.content,
          description: document.querySelector('meta[name=description]')?.content,
          blocking: performance.getEntriesByType('resource')
            .filter((e) => e.renderBlockingStatus === 'blocking').map((e) => e.name),
        })"""
    )
    assert len(head["title"]) > 3
    assert head["lang"] == "en"
    assert head["doctype"] == "CSS1Compat"
    assert "width=device-width" in head["viewport"]
    assert "user-scalable=no" not in head["viewport"]
    assert len(head["description"]) > 20
    assert all(url.startswith(f"{app.url}/assets/") for url in head["blocking"])


async def test_everything_is_reached_by_keyboard_and_seen_when_it_is(
    app: App, browser: Browser
) -> None:
    page, _ = await new_page(browser, viewport=DESKTOP, reduced_motion="reduce")
    for name in PAGES:
        await at(page, app, name)
        stops = await page.evaluate(CLICKABLE)
        missed, unseen = set(range(len(stops))), set[str]()
        for _ in range(ROUNDS):
            unseen |= await tab_through(page, missed, len(stops) + 20)
            # A plan may move the camera meanwhile, and with it the link at its variant.
            missed &= set(await page.evaluate(STILL_THERE))
            if not missed:
                break
        assert len(stops) > 3, name
        assert [stops[at] for at in missed] == [], f"{name}: not reached with Tab"
        assert unseen == set(), f"{name}: focus is not seen"


async def tab_through(page: Page, missed: set[int], presses: int) -> set[str]:
    """Press Tab until nothing is missed; return where the focus was that cannot be seen."""
    unseen = set[str]()
    for _ in range(presses):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(FOCUSED)
        if focused["stop"] is None:
            continue
        if not focused["seen"]:
            unseen.add(focused["html"])
        missed.discard(int(focused["stop"]))
        if not missed:
            break
    return unseen


async def test_a_finger_hits_what_it_aims_at(app: App, browser: Browser) -> None:
    page, _ = await new_page(browser, viewport=PHONE, has_touch=True, is_mobile=True)
    for name in PAGES:
        await at(page, app, name)
        assert await page.evaluate(SMALL) == [], name
